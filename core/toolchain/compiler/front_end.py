"""From one kernel to LLVM's bitcode, by numba.

What of numba is used here is no public interface of it: `compile_extra`, flags, contexts, `_final_module`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from numba.core import cgutils, compiler, funcdesc, typing, utils
from numba.core.compiler import Flags
from numba.core.registry import cpu_target

from psearch.core.toolchain import jit
from psearch.core.toolchain.intrinsics import abort_unless
from psearch.core.toolchain.jit import External, Kernel


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
    """Prepare kernels before the first of them is compiled: all call each other by symbol."""
    cpu_target.typing_context.refresh()
    cpu_target.target_context.refresh()
    for kernel in kernels:
        _make_external(kernel)


def typed(kernel: Kernel) -> Any:
    """Return numba's result for one kernel: its types, and a library with LLVM's intermediate code."""
    contexts = cpu_target.typing_context, cpu_target.target_context
    with _bounds_checked_in(kernel):
        return compiler.compile_extra(*contexts, kernel.py_func, kernel.arguments, kernel.result, _flags(), {})


@contextmanager
def _bounds_checked_in(kernel: Kernel) -> Iterator[None]:
    """An index out of range ends the process, as any failed check. numba would raise an exception without a place."""

    def check_bound(context: Any, builder: Any, index: Any, length: Any, axis: object = None) -> None:
        abort_unless(builder, builder.icmp_unsigned("<", index, length), f"{kernel.symbol}: index out of range")

    numba_s = cgutils.do_boundscheck
    cgutils.do_boundscheck = check_bound
    try:
        yield
    finally:
        cgutils.do_boundscheck = numba_s


def bitcode_of(kernel: Kernel) -> bytes:
    """Return one kernel before optimisation. Visible from outside is its symbol alone."""
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
