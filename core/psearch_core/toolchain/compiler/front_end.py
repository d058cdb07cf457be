"""Compiles one kernel to LLVM bitcode, by numba.

It uses numba's internals: `compile_extra`, flags, contexts, `_final_module`, type annotations, `Lower.lower_inst`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from numba.core import cgutils, compiler, funcdesc, ir, lowering, types, typing, utils
from numba.core.compiler import Flags
from numba.core.errors import TypingError
from numba.core.registry import cpu_target

from psearch_core.toolchain import jit
from psearch_core.toolchain.compiler.dependencies import called_by
from psearch_core.toolchain.intrinsics import abort_unless
from psearch_core.toolchain.jit import External, Kernel

_PYTHONS = ("Py", "_Py")
_DRAWING = ("_random_", "_rnd_")
"""Parts of the names of numba's helpers that draw random numbers."""


def _flags() -> Any:
    flags: Any = Flags()
    flags.no_compile = True
    flags.no_cpython_wrapper = True
    flags.no_cfunc_wrapper = True
    flags.enable_looplift = False
    flags.enable_pyobject = False
    flags.force_pyobject = False
    flags.release_gil = False
    flags.nrt = False
    flags.boundscheck = jit.CHECK
    flags.error_model = "numpy"
    return flags


def _make_external(kernel: Kernel) -> None:
    """Let other kernels call this one by its symbol, without its code."""
    symbol = kernel.symbol
    descriptor = funcdesc.FunctionDescriptor(
        native=True,
        modname=kernel.py_func.__module__,
        qualname=symbol,
        unique_name=symbol,
        doc="",
        typemap={},
        restype=kernel.result,
        calltypes={},
        args=tuple(f"argument_{number}" for number in range(len(kernel.arguments))),
        kws=(),
        mangler=lambda name, arguments, **others: symbol,
        argtypes=kernel.arguments,
    )
    key = ("psearch", symbol)
    cpu_target.target_context.insert_user_function(key, descriptor)
    signature = typing.signature(kernel.result, *kernel.arguments)
    template = typing.make_concrete_template(symbol, key=key, signatures=[signature])
    kernel.external = External(template, utils.pysignature(kernel.py_func), key)


def prepare(kernels: Iterable[Kernel]) -> None:
    """Let kernels call each other by symbol. Must be called before the first of them is compiled."""
    cpu_target.typing_context.refresh()
    cpu_target.target_context.refresh()
    for kernel in kernels:
        _make_external(kernel)


def typed(kernel: Kernel) -> Any:
    """Return numba's result for one kernel: its types, and a library with LLVM's intermediate code. Raises TypingError
    for a float that numba would silently truncate to an integer."""
    contexts = cpu_target.typing_context, cpu_target.target_context
    with _bounds_checked_in(kernel), _answers_limited_in(kernel):
        result = compiler.compile_extra(*contexts, kernel.py_func, kernel.arguments, kernel.result, _flags(), {})
    _refuse_floats(result.type_annotation)
    return result


def _refuse_floats(annotation: Any) -> None:
    for block in annotation.blocks.values():
        for statement in block.body:
            for what, wanted, variable in _conversions(statement, annotation):
                if isinstance(annotation.typemap[variable.name], types.Float):
                    if isinstance(wanted, types.Boolean):
                        raise TypingError(f"{what} a float, where it must be True or False", statement.loc)
                    if isinstance(wanted, types.Integer):
                        hint = "`//` divides, int() cuts off"
                        raise TypingError(f"{what} a float, where it must be a whole number ({hint})", statement.loc)


def _conversions(statement: Any, annotation: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield implicit conversions of a statement: a description of the place, the type there, the variable."""
    if isinstance(statement, ir.SetAttr):
        yield f"the field {statement.attr} is given", annotation.calltypes[statement].args[1], statement.value
    elif isinstance(statement, ir.SetItem | ir.StaticSetItem):
        array = annotation.typemap[statement.target.name]
        yield "an array is given", getattr(array, "dtype", None), statement.value
    elif isinstance(statement, ir.Assign) and isinstance(statement.value, ir.Expr):
        value = statement.value
        if value.op == "cast":
            yield "it returns", annotation.typemap[statement.target.name], value.value
        elif value.op == "call" and not value.kws:
            for wanted, variable in zip(annotation.calltypes[value].args, value.args, strict=False):
                yield "a call is given", wanted, variable


@contextmanager
def _answers_limited_in(kernel: Kernel) -> Iterator[None]:
    """Clamp what a stand-in returns to the limits of its hook; a build with checks aborts instead."""
    numba_s = lowering.Lower.lower_inst

    def lower(self: Any, statement: Any) -> None:
        if not isinstance(statement, ir.Return) or self.func_ir.func_id.func is not kernel.py_func:
            numba_s(self, statement)
            return
        builder, value = self.builder, self.loadvar(statement.value.name)
        for sign, limit in zip("<>", kernel.limits or (), strict=False):
            bound = value.type(limit)
            is_beyond = builder.icmp_signed(sign, value, bound)
            if jit.CHECK:
                abort_unless(builder, builder.not_(is_beyond), f"{kernel.symbol}: {kernel.limits_text}")
            value = builder.select(is_beyond, bound, value)
        self.call_conv.return_value(builder, value)

    if kernel.limits is not None:
        lowering.Lower.lower_inst = lower  # type: ignore[method-assign]  # numba has no hook for one function
    try:
        yield
    finally:
        lowering.Lower.lower_inst = numba_s  # type: ignore[method-assign]  # as it was


@contextmanager
def _bounds_checked_in(kernel: Kernel) -> Iterator[None]:
    """Make an index out of range abort the process like any failed check; numba's exception would name no place."""

    def check_bound(context: Any, builder: Any, index: Any, length: Any, axis: object = None) -> None:
        abort_unless(builder, builder.icmp_unsigned("<", index, length), f"{kernel.symbol}: index out of range")

    numba_s = cgutils.do_boundscheck
    cgutils.do_boundscheck = check_bound
    try:
        yield
    finally:
        cgutils.do_boundscheck = numba_s


def _refuse_unknown(module: Any, kernel: Kernel) -> None:
    """Raise TypingError for a function that a kernel's bitcode needs and that exists only in numba's process."""
    libc = ctypes.CDLL(None)
    called = {each.symbol for each in called_by(kernel)}
    for function in module.functions:
        name = function.name
        is_known = name in called or name in jit.registry or name.startswith("llvm.") or hasattr(libc, name)
        if function.is_declaration and (not is_known or name.startswith(_PYTHONS)):
            if any(part in name for part in _DRAWING):
                raise TypingError("a kernel draws no random numbers: a search of one worker is the same every time")
            raise TypingError(f"it needs {name}, which numba has in a process of its own only: no kernel can call it")


def bitcode_of(kernel: Kernel) -> bytes:
    """Return the bitcode of one kernel, not optimised. Only its symbol is visible from outside."""
    result = typed(kernel)
    module = result.library._final_module
    libraries: list[Any] = []

    def collect(library: Any) -> None:
        for other in library._linking_libraries:
            if other not in libraries:
                libraries.append(other)
                collect(other)

    # numba's helpers (max, `in` ..) have numbers in their names that differ from process to process
    collect(result.library)
    for library in libraries:
        module.link_in(library._get_module_for_linking(), preserve=True)
    _refuse_unknown(module, kernel)
    own = result.fndesc.llvm_func_name
    for function in module.functions:
        if not function.is_declaration and function.name != own:
            function.linkage = "internal"
    for variable in module.global_variables:
        if not variable.is_declaration:
            variable.linkage = "internal"
    module.get_function(own).name = kernel.symbol
    return bytes(module.as_bitcode())
