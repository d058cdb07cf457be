"""Turns the bitcode of a group's kernels into one object file, by LLVM."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba.core import types

from psearch_core.toolchain.jit import Kernel

_OPTIMISATION = 3


def processor() -> tuple[str, str]:
    """Return LLVM's name and features of this processor, for which code is generated."""
    return llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


def target_machine() -> Any:
    """Return LLVM's target for this processor, with position-independent code that any process can load."""
    target = llvm.Target.from_triple(llvm.get_process_triple())
    name, features = processor()
    return target.create_target_machine(
        cpu=name, features=features, opt=_OPTIMISATION, reloc="pic", codemodel="default"
    )


def _wrapper_module(entries: Iterable[Kernel]) -> ir.Module:
    """Make a C function for each entry, which takes and returns 64-bit integers.

    numba's functions return a status, and their value through a pointer. A status other than 0 is an exception, which
    only a build with checks can raise; it ends the process.
    """
    i64, i32 = ir.IntType(64), ir.IntType(32)
    pointer = ir.IntType(8).as_pointer()
    module = ir.Module("entries")
    abort = ir.Function(module, ir.FunctionType(ir.VoidType(), []), "abort")
    for kernel in entries:
        count = len(kernel.arguments)
        gives_nothing = kernel.result == types.void
        if any(kind != types.int64 for kind in kernel.arguments) or kernel.result not in (types.void, types.int64):
            raise AssertionError(f"{kernel.symbol}: an entry takes and returns int64 only")
        inner_type = ir.FunctionType(i32, [i64.as_pointer(), pointer.as_pointer(), *[i64] * count])
        inner = ir.Function(module, inner_type, kernel.symbol)
        outer = ir.Function(module, ir.FunctionType(i64, [i64] * count), f"entry_{kernel.py_func.__name__}")
        builder = ir.IRBuilder(outer.append_basic_block())
        value, exception = builder.alloca(i64), builder.alloca(pointer)
        builder.store(ir.Constant(i64, 0), value)
        status = builder.call(inner, [value, exception, *outer.args])
        with builder.if_then(builder.icmp_unsigned("!=", status, ir.Constant(i32, 0)), likely=False):
            builder.call(abort, [])
            builder.unreachable()
        builder.ret(ir.Constant(i64, 0) if gives_nothing else builder.load(value))
    return module


def _put_in_place(part: Any, replaced: Mapping[str, str]) -> None:
    """Rename stand-ins to the kernels that they replace. An original that its stand-in calls is renamed, too."""
    stand_ins = {new: old for old, new in replaced.items()}
    defined = {function.name for function in part.functions if not function.is_declaration}
    originals = {old: f"{old}.original" for old, new in replaced.items() if old in defined or new in defined}
    for names in (originals, stand_ins):  # in this order: a name must be free before another function takes it
        for function in list(part.functions):
            if function.name in names:
                function.name = names[function.name]


def object_code(bitcodes: Iterable[bytes], entries: list[Kernel], replaced: Mapping[str, str] | None = None) -> bytes:
    """Link all kernels of a group and return one optimised object file. replaced: see `closure`."""
    module = None
    for bitcode in bitcodes:
        part = llvm.parse_bitcode(bitcode)
        _put_in_place(part, replaced or {})
        if module is None:
            module = part
        else:
            module.link_in(part)
    if module is None:
        raise AssertionError("a group without kernels")
    module.link_in(llvm.parse_assembly(str(_wrapper_module(entries))))
    for function in module.functions:
        if not function.is_declaration and not function.name.startswith("entry_"):
            function.linkage = "internal"
    machine = target_machine()
    module.data_layout = str(machine.target_data)
    options = llvm.create_pipeline_tuning_options(speed_level=_OPTIMISATION)
    # Loops here are short and run over bits or moves: vectorised they are longer, not faster.
    options.loop_vectorization = False
    options.slp_vectorization = False
    options.loop_interleaving = False
    passes = llvm.create_pass_builder(machine, options)
    passes.getModulePassManager().run(module, passes)
    module.verify()
    return bytes(machine.emit_object(module))
