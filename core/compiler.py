"""Compiles groups of kernels: run by `kernels.py` in a process of its own.

numba compiles a function together with everything that it calls, and each of these again with what *it* calls: most of
the time goes into optimising the same code many times. Here numba is only the front end. Each kernel becomes LLVM's
bitcode by itself, in which the kernels that it calls are external symbols: their signatures are known beforehand, so
any number of processes can do this in any order, and a kernel that has not changed need not be done again. Then all
kernels of a group are linked into one module, of which only the entries are visible from outside, and LLVM optimises
that once, across all calls.

What of numba is used here is no public interface of it: `compile_extra`, flags, contexts, `_final_module`. Tests
compile with the oldest and the newest numba that is supported.
"""

from __future__ import annotations

import ast
import ctypes
import hashlib
import inspect
import json
import os
import signal
import sys
import time
import types as python_types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import multiprocess
import numpy as np
from llvmlite import ir
from numba.core import compiler, funcdesc, types, typing, utils
from numba.core.compiler import Flags
from numba.core.registry import cpu_target
from numba.extending import _Intrinsic

from psearch.core import jit, kernel_cache
from psearch.core.jit import EntryKernel, External, Kernel

_OPTIMISATION = 3
_MOST_PROCESSES = 16
_PR_SET_PDEATHSIG = 1

Groups = Mapping[str, tuple[Sequence[str], Mapping[str, str]]]
"""By name: the modules of its entries, and what it replaces."""


# -- what a kernel depends on --------------------------------------------------------------------------------------


def _names(code: python_types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, python_types.CodeType):
            yield from _names(constant)


def _globals_of(kernel: Kernel) -> dict[str, Any]:
    """What the kernel's global names stand for; attributes, and builtins, are left out."""
    function = kernel.py_func
    if function.__closure__:
        raise AssertionError(f"{kernel.symbol} is a closure: kernels are plain functions")
    return {name: function.__globals__[name] for name in _names(function.__code__) if name in function.__globals__}


def called_by(kernel: Kernel) -> list[Kernel]:
    """The kernels that it calls."""
    return [value for value in _globals_of(kernel).values() if isinstance(value, Kernel)]


def closure(entries: Iterable[Kernel], replaced: Mapping[str, str] | None = None) -> dict[str, Kernel]:
    """Entries and all that they need, by symbol. replaced: symbols, and those of the kernels that stand in for them."""
    replaced = replaced or {}
    unused = set(replaced)
    found: dict[str, Kernel] = {}
    waiting = list(entries)
    while waiting:
        kernel = waiting.pop()
        if kernel.symbol in replaced:
            unused.discard(kernel.symbol)
            kernel = _stand_in(kernel, replaced[kernel.symbol])
        if kernel.symbol not in found:
            found[kernel.symbol] = kernel
            waiting += called_by(kernel)
    if unused:
        raise AssertionError(f"nothing calls {', '.join(sorted(unused))}, to be replaced")
    return found


def _stand_in(kernel: Kernel, symbol: str) -> Kernel:
    """The kernel of this symbol, which can be called as the first one is."""
    other = jit.registry[symbol]
    if (other.arguments, other.result) != (kernel.arguments, kernel.result):
        raise AssertionError(f"{symbol} cannot replace {kernel.symbol}: its signature is another")
    return other


class _Sources:
    """Syntax trees of functions, without what does not reach machine code: comments, docstrings, places."""

    def __init__(self) -> None:
        self._functions: dict[str, dict[tuple[str, int], ast.FunctionDef]] = {}
        self._modules: dict[str, str] = {}

    def function(self, function: Callable[..., Any]) -> str:
        file = inspect.getsourcefile(function) or ""
        if file not in self._functions:
            tree = ast.parse(Path(file).read_bytes())
            self._functions[file] = {
                (node.name, decorator.lineno): node
                for node in ast.walk(tree)
                if isinstance(node, ast.FunctionDef)
                for decorator in (node.decorator_list or [ast.Constant(0, lineno=node.lineno)])
            }
        code = function.__code__
        node = self._functions[file][code.co_name, code.co_firstlineno]
        return _dump([node.args, *_without_docstring(node.body)])

    def module(self, name: str) -> str:
        """Of a module of intrinsics: all of it."""
        if name not in self._modules:
            tree = ast.parse(Path(str(sys.modules[name].__file__)).read_bytes())
            for node in ast.walk(tree):
                if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef):
                    node.body = _without_docstring(node.body)
            self._modules[name] = _dump(tree.body)
        return self._modules[name]


def _without_docstring(body: list[Any]) -> list[ast.stmt]:
    return [
        statement
        for statement in body
        if not (
            isinstance(statement, ast.Expr)
            and isinstance(statement.value, ast.Constant)
            and isinstance(statement.value.value, str)
        )
    ]


def _dump(nodes: Iterable[ast.AST]) -> str:
    return "\n".join(ast.dump(node) for node in nodes)


_sources = _Sources()


def _frozen(kernel: Kernel, name: str, value: Any) -> str:
    """What a global of a kernel puts into its machine code, as text."""
    if isinstance(value, Kernel):
        return f"kernel {value.symbol} {value.result} {value.arguments}"
    if isinstance(value, bool | int | str | np.integer | np.bool_ | tuple):
        return repr(value)
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {value.shape} {value.tobytes().hex()}"
    if isinstance(value, types.Type):
        return str(value)
    if isinstance(value, _Intrinsic):
        definition = value._defn
        cells = [cell.cell_contents for cell in definition.__closure__ or ()]
        return f"{_sources.module(definition.__module__)} {[str(cell) for cell in cells]}"
    if isinstance(value, python_types.BuiltinFunctionType | type):
        return value.__name__
    if isinstance(value, python_types.ModuleType) and value is np:
        return "numpy"
    raise AssertionError(f"{kernel.symbol}: a kernel cannot use {name}, which is a {type(value).__name__}")


def _toolchain() -> str:
    """This file and the decorators: they decide how the same source is compiled."""
    return _sources.module("psearch.core.jit") + _sources.module(__name__)


def digest_of(kernel: Kernel) -> str:
    """Changes with all that changes this kernel's bitcode; the kernels that it calls have digests of their own."""
    parts = [_toolchain(), kernel.symbol, str(kernel.result), str(kernel.arguments), _sources.function(kernel.py_func)]
    for name, value in sorted(_globals_of(kernel).items()):
        parts.append(f"{name} = {_frozen(kernel, name, value)}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]


# -- the front end -------------------------------------------------------------------------------------------------


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
    """Before the first of them is compiled: all call each other by symbol."""
    cpu_target.typing_context.refresh()
    cpu_target.target_context.refresh()
    for kernel in kernels:
        _make_external(kernel)


def typed(kernel: Kernel) -> Any:
    """numba's result for one kernel: its types, and a library with LLVM's intermediate code."""
    contexts = cpu_target.typing_context, cpu_target.target_context
    return compiler.compile_extra(*contexts, kernel.py_func, kernel.arguments, kernel.result, _flags(), {})


def bitcode_of(kernel: Kernel) -> bytes:
    """One kernel before optimisation. Visible from outside is its symbol alone."""
    result = typed(kernel)
    module = result.library._final_module
    libraries: list[Any] = []

    def collect(library: Any) -> None:
        for other in library._linking_libraries:
            if other not in libraries:
                libraries.append(other)
                collect(other)

    # numba's own helpers (max, `in` ..): their names hold numbers that differ from process to process
    collect(result.library)
    for library in libraries:
        module.link_in(library._get_module_for_linking(), preserve=True)
    own = result.fndesc.llvm_func_name
    for function in module.functions:
        if not function.is_declaration and function.name != own:
            function.linkage = "internal"
    for variable in module.global_variables:
        if not variable.is_declaration:
            variable.linkage = "internal"
    module.get_function(own).name = kernel.symbol
    return bytes(module.as_bitcode())


# -- the back end --------------------------------------------------------------------------------------------------


def target_machine() -> Any:
    """For this processor; code that may lie anywhere, so that an object can be loaded by any process."""
    target = llvm.Target.from_triple(llvm.get_process_triple())
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=_OPTIMISATION,
        reloc="pic",
        codemodel="default",
    )


def _wrapper_module(entries: Iterable[Kernel]) -> ir.Module:
    """For each entry a C function: 64-bit integers in and out.

    numba's functions return a status, and their value through a pointer. A status other than 0 is an exception, which
    no kernel raises but in a build with checks: the process ends.
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
        outer = ir.Function(module, ir.FunctionType(i64, [i64] * count), f"psearch_{kernel.py_func.__name__}")
        builder = ir.IRBuilder(outer.append_basic_block())
        value, exception = builder.alloca(i64), builder.alloca(pointer)
        builder.store(ir.Constant(i64, 0), value)
        status = builder.call(inner, [value, exception, *outer.args])
        with builder.if_then(builder.icmp_unsigned("!=", status, ir.Constant(i32, 0)), likely=False):
            builder.call(abort, [])
            builder.unreachable()
        builder.ret(ir.Constant(i64, 0) if gives_nothing else builder.load(value))
    return module


def object_code(bitcodes: Iterable[bytes], entries: list[Kernel], replaced: Mapping[str, str] | None = None) -> bytes:
    """All kernels of a group as one object file, optimised as a whole. replaced: as for `closure`."""
    names = {new: old for old, new in (replaced or {}).items()}
    module = None
    for bitcode in bitcodes:
        part = llvm.parse_bitcode(bitcode)
        for function in part.functions:
            if function.name in names:
                function.name = names[function.name]
        if module is None:
            module = part
        else:
            module.link_in(part)
    if module is None:
        raise AssertionError("a group without kernels")
    module.link_in(llvm.parse_assembly(str(_wrapper_module(entries))))
    for function in module.functions:
        if not function.is_declaration and not function.name.startswith("psearch_"):
            function.linkage = "internal"
    machine = target_machine()
    module.data_layout = str(machine.target_data)
    options = llvm.create_pipeline_tuning_options(speed_level=_OPTIMISATION)
    # loops here are short and over bits or moves: vectors of them make the code longer, not faster
    options.loop_vectorization = False
    options.slp_vectorization = False
    options.loop_interleaving = False
    passes = llvm.create_pass_builder(machine, options)
    passes.getModulePassManager().run(module, passes)
    module.verify()
    return bytes(machine.emit_object(module))


# -- a whole build -------------------------------------------------------------------------------------------------


class Build:
    """Compiles groups into a cache folder; `tell` gets one line at a time."""

    def __init__(self, folder: Path, groups: Groups, tell: Callable[[str], None]) -> None:
        self.folder = folder
        self.tell = tell
        self.start = time.perf_counter()
        self.entries: dict[str, list[Kernel]] = {}
        self.replaced = {name: replaced for name, (_, replaced) in groups.items()}
        for name, (modules, replaced) in groups.items():
            for module in (*modules, *(symbol.rpartition(".")[0] for symbol in replaced.values())):
                import_module(module)
            self.entries[name] = [
                kernel
                for kernel in jit.registry.values()
                if isinstance(kernel, EntryKernel) and kernel.py_func.__module__ in modules
            ]
        self.closures = {name: closure(entries, self.replaced[name]) for name, entries in self.entries.items()}
        self.digests = {
            symbol: digest_of(kernel) for members in self.closures.values() for symbol, kernel in members.items()
        }

    def run(self) -> None:
        """Make the objects that are missing, and note which object each group has now."""
        missing = [name for name in self.entries if not kernel_cache.read_object(self.folder, self.object_name(name))]
        stale = {
            symbol
            for name in missing
            for symbol in self.closures[name]
            if kernel_cache.read_sealed(self.bitcode_path(symbol)) is None
        }
        # the longest first: no process is left with one at the end
        order = sorted(stale, key=lambda symbol: -len(jit.registry[symbol].py_func.__code__.co_code))
        if order:
            prepare(jit.registry.values())
        total = len(order) + len(missing)
        for done, what in enumerate(self._in_processes(order, missing), start=1):
            self.tell(f"compiling kernels, once: {done}/{total} {what} ({time.perf_counter() - self.start:.0f} s)")
        files = {file: kernel_cache.file_hash(file) for file in self.files()}
        for name in self.entries:
            kernel_cache.write_record(self.folder, name, files, self.object_name(name))

    def _in_processes(self, symbols: list[str], groups: list[str]) -> Iterator[str]:
        """Do all the work on all cores; says what is done. Kernels first: a group needs all of them."""
        most = min(len(os.sched_getaffinity(0)), _MOST_PROCESSES, max(len(symbols), len(groups)))
        if most <= 1:
            yield from map(self.front_end, symbols)
            yield from map(self.back_end, groups)
            return
        global _build
        _build = self  # a process that is forked has it, and numba and the kernels; this process has one thread
        with multiprocess.get_context("fork").Pool(most, _begin_process, (os.getpid(),)) as pool:
            yield from pool.imap_unordered(_front_end, symbols)
            yield from pool.imap_unordered(_back_end, groups)

    def files(self) -> list[str]:
        """Every file of this package that was imported to compile, and those of kernels elsewhere."""
        others = {kernel.py_func.__module__ for kernel in jit.registry.values()}
        own = [module for name, module in sys.modules.items() if name.partition(".")[0] == "psearch" or name in others]
        return sorted(str(module.__file__) for module in own if getattr(module, "__file__", None))

    def bitcode_path(self, symbol: str) -> Path:
        return self.folder / f"{self.digests[symbol]}.bc"

    def object_name(self, group: str) -> str:
        """Of a group: named by all that is in it."""
        parts = [_toolchain(), *(kernel.symbol for kernel in self.entries[group])]
        parts += [self.digests[symbol] for symbol in sorted(self.closures[group])]
        parts += [str(sorted(self.replaced[group].items()))]
        return f"{group}-{hashlib.sha256(chr(10).join(parts).encode()).hexdigest()[:32]}.o"

    def front_end(self, symbol: str) -> str:
        """Compile one kernel to bitcode."""
        kernel_cache.write_sealed(self.bitcode_path(symbol), bitcode_of(jit.registry[symbol]))
        return symbol.rpartition(".")[2]

    def back_end(self, group: str) -> str:
        """Link and optimise one group."""
        bitcodes = []
        for symbol in sorted(self.closures[group]):
            bitcode = kernel_cache.read_sealed(self.bitcode_path(symbol))
            if bitcode is None:
                raise OSError(f"{self.bitcode_path(symbol)} cannot be read")
            bitcodes.append(bitcode)
        entries = self.entries[group]
        counts = {kernel.py_func.__name__: len(kernel.arguments) for kernel in entries}
        code = object_code(bitcodes, entries, self.replaced[group])
        kernel_cache.write_object(self.folder, self.object_name(group), counts, code)
        return f"all of {group}"


_build: Build


def _front_end(symbol: str) -> str:
    return _build.front_end(symbol)


def _back_end(group: str) -> str:
    return _build.back_end(group)


def _begin_process(parent: int) -> None:
    """A process of the pool: leaves Ctrl-C to its parent, and ends with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # the pool ends its processes with it; a worker ignores it
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def main(folder: str, groups: Groups) -> int:
    """Compile groups. Progress goes to stdout, a line of JSON each."""

    def tell(text: str) -> None:
        print(json.dumps(text), flush=True)

    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        Build(Path(folder), groups, tell).run()
    except (KeyboardInterrupt, BrokenPipeError):
        return 1
    return 0
