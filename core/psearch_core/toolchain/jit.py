"""Decorators of kernels, and the only place that sets numba's options.

- `@kernel(signature)` marks a compiled function that only other kernels call.
- `@entry(signature)` marks one that Python calls, too; it takes and returns only integers (addresses are int64).
- `@hook(signature)` marks a kernel that a user's file may replace by one marked `@replaces(hook)`, which has the
  signature of the hook.

Each kernel has exactly one signature. `psearch_core.toolchain.compiler` turns kernels into machine code; `groups.py`
lets Python call it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from numba.core import sigutils
from numba.core.registry import CPUDispatcher

from psearch_core.toolchain.groups import Entry, Group, group_of
from psearch_core.toolchain.kernel_cache import PlugInError, is_on

CHECK = is_on("PSEARCH_CHECK")
"""Whether kernels are compiled with their assertions (`intrinsics.check`) and with checks of array bounds."""
YIELDS = is_on("PSEARCH_YIELDS")
"""Whether kernels are compiled so that a worker sometimes yields its core between two steps that others can see."""

# error_model="numpy": an integer division needs no zero check and half the code.
# nogil: a worker inside a kernel must not block the other threads of a program that embeds us.
_OPTIONS: dict[str, Any] = {"nopython": True, "error_model": "numpy", "nogil": True}

registry: dict[str, Kernel] = {}
"""Kernels of all imported modules, by symbol."""


class External(NamedTuple):
    """The interface of a kernel to other kernels that are compiled separately."""

    template: Any
    """numba's typing template, with one signature."""
    pysignature: Any
    key: Any
    """Key of the call's implementation in numba's target context."""


class Kernel(CPUDispatcher):
    """A compiled function with one signature.

    `psearch_core.toolchain.compiler` compiles it, and sets `external` so that other kernels can call it. It is also an
    ordinary numba function: tests and tuning call kernels from functions that numba compiles when they are called.
    """

    def __init__(
        self, function: Callable[..., Any], signature: Any, is_hook: bool = False, is_memory: bool = False
    ) -> None:
        super().__init__(function, targetoptions=_OPTIONS)
        self.arguments, self.result = sigutils.normalize_signature(signature)
        self.symbol = f"{function.__module__}.{function.__name__}"
        """Name of the function in machine code."""
        self.external: External | None = None
        self.is_hook = is_hook
        """Whether a user's file may replace the kernel."""
        self.is_memory = is_memory
        """Whether the kernel gives memory that a user's file must reserve (`WORDS = N`)."""
        self.answers: tuple[int, int] | None = None
        """Least and greatest value that a stand-in for this hook may return; None without limits."""
        self.writes: frozenset[tuple[Any, str]] = frozenset()
        """Fields that a stand-in for this hook may write, as record type and name."""
        self.stands_in_for: Kernel | None = None

    @property
    def limits(self) -> tuple[int, int] | None:
        """Least and greatest value that this stand-in may return; None without limits."""
        return None if self.stands_in_for is None else self.stands_in_for.answers

    @property
    def limits_text(self) -> str:
        """The limits as a message; only for a kernel that has limits."""
        hook, (least, most) = self.stands_in_for.py_func.__name__, self.limits  # type: ignore[union-attr, misc]  # there are limits
        return f"{hook} must answer with a number from {least} to {most}"

    def get_call_template(self, args: Any, kws: Any) -> Any:
        if self.external is not None:
            return self.external.template, self.external.pysignature, args, kws
        if not self.overloads:
            self.compile(self.result(*self.arguments))
            # a call with other types is an error or a conversion, never a second version
            self.disable_compile()
        return super().get_call_template(args, kws)

    def get_overload(self, sig: Any) -> Any:
        return super().get_overload(sig) if self.external is None else self.external.key


class EntryKernel(Kernel):
    """A kernel that Python can call; the machine code is that of its group's object."""

    def __init__(self, function: Callable[..., Any], signature: Any, group: Group) -> None:
        super().__init__(function, signature)
        self.call = Entry(group, function.__name__)

    def __call__(self, *arguments: int) -> int:
        return self.call(*arguments)


def _registered(made: Kernel) -> Kernel:
    registry[made.symbol] = made
    return made


def kernel(signature: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that makes a kernel with this signature."""
    return lambda function: _registered(Kernel(function, signature))


def hook(signature: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that makes a kernel which a user's file may replace."""
    return lambda function: _registered(Kernel(function, signature, is_hook=True))


def limit_answers(least: int, most: int, *hooks: Any) -> None:
    """Clamp what stand-ins for these hooks return to limits; a build with checks aborts with a message instead. The
    package's own kernels are compiled without this."""
    for each in hooks:
        each.answers = least, most


def allow_writing(record: Any, field: str, *hooks: Any) -> None:
    """Let stand-ins for these hooks write a field of a record. They may only read everything else."""
    for each in hooks:
        each.writes |= {(record, field)}


def memory(signature: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator for a kernel that gives a user's file its memory: the N words of its line `WORDS = N`."""
    return lambda function: _registered(Kernel(function, signature, is_memory=True))


def replaces(original: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator for a kernel that stands in for a hook in searches with the kernel's file.

    The stand-in may call the original. Raises PlugInError if `original` is no hook or has other arguments.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        place = f"{function.__code__.co_filename}:{line_of(function)}: {function.__name__}"
        if not isinstance(original, Kernel) or not original.is_hook:
            known = ", ".join(sorted(each.py_func.__name__ for each in registry.values() if each.is_hook))
            what = getattr(getattr(original, "py_func", original), "__name__", repr(original))
            raise PlugInError(f"{place} cannot replace {what[:40]}: there are {known}")
        wanted = inspect.signature(original.py_func)
        if len(inspect.signature(function).parameters) != len(wanted.parameters):
            text = f"{place} takes {inspect.signature(function)}"
            raise PlugInError(f"{text}, and {original.py_func.__name__} is called with {wanted}")
        made = kernel(original.result(*original.arguments))(function)
        made.stands_in_for = original
        return made

    return decorate


def line_of(function: Callable[..., Any]) -> int:
    """Return the number of the line with a function's `def`, below its decorators."""
    try:
        lines, first = inspect.getsourcelines(function)
    except OSError:  # made by `exec`
        return function.__code__.co_firstlineno
    return first + next((number for number, line in enumerate(lines) if line.lstrip().startswith("def ")), 0)


def entry(signature: Any, group: Group | None = None) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator for a kernel that Python can call, which takes and returns only integers.

    group: a group that has the function's module among its modules; None for a group of that module alone.
    """
    return lambda function: _registered(EntryKernel(function, signature, group or group_of(function.__module__)))
