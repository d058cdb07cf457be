"""The decorators of kernels; they own all of numba's options.

- `@kernel(signature)` marks a compiled function that only other kernels call.
- `@entry(signature)` marks one that Python calls, too; it takes and returns integers only (addresses are int64).
- `@hook(signature)` marks a kernel that a user's file may replace: by one marked `@replaces(hook)`, of its signature.

All have exactly one signature. How they become machine code: `psearch_core.toolchain.compiler`; how Python calls
it: `groups.py`.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from typing import Any, NamedTuple

from numba.core import sigutils
from numba.core.registry import CPUDispatcher

from psearch_core.toolchain.groups import Entry, Group, group_of
from psearch_core.toolchain.kernel_cache import PlugInError

CHECK = bool(os.environ.get("PSEARCH_CHECK"))
"""A build with the assertions of kernels (`intrinsics.check`) and with array bounds checked."""
YIELDS = bool(os.environ.get("PSEARCH_YIELDS"))
"""A build in which a worker now and then loses its core between two steps that others can see."""

# error_model="numpy": an integer division needs no zero check and half the code.
# nogil: a worker inside a kernel must not block the other threads of a program that embeds us.
_OPTIONS: dict[str, Any] = {"nopython": True, "error_model": "numpy", "nogil": True}

registry: dict[str, Kernel] = {}
"""All kernels imported so far, by symbol."""


class External(NamedTuple):
    """How a kernel is called by another that is being compiled without it."""

    template: Any
    """numba's typing template: the one signature"""
    pysignature: Any
    key: Any
    """of its lowering in the target context"""


class Kernel(CPUDispatcher):
    """A function with one signature.

    It is compiled by `psearch_core.toolchain.compiler`, which sets `external` while other kernels call it. It is an
    ordinary numba function, too: tests and fits call kernels from functions that numba compiles as they come.
    """

    def __init__(
        self, function: Callable[..., Any], signature: Any, is_hook: bool = False, is_memory: bool = False
    ) -> None:
        super().__init__(function, targetoptions=_OPTIONS)
        self.arguments, self.result = sigutils.normalize_signature(signature)
        self.symbol = f"{function.__module__}.{function.__name__}"
        """its name in machine code"""
        self.external: External | None = None
        self.is_hook = is_hook
        """whether a user's file may replace it"""
        self.is_memory = is_memory
        """whether it gives memory that a user's file has to ask for"""
        self.answers: tuple[int, int] | None = None
        """least and most that a stand-in for this hook may return"""
        self.writes: frozenset[tuple[Any, str]] = frozenset()
        """record types, and the field of each, that a stand-in for this hook may assign to"""
        self.stands_in_for: Kernel | None = None

    @property
    def limits(self) -> tuple[int, int] | None:
        """Least and most that it may return, if it stands in for a hook that has such."""
        return None if self.stands_in_for is None else self.stands_in_for.answers

    @property
    def limits_text(self) -> str:
        """The same in words."""
        # asked of those alone that have limits
        hook, (least, most) = self.stands_in_for.py_func.__name__, self.limits  # type: ignore[union-attr, misc]
        return f"{hook} must answer with a number from {least} to {most}"

    def get_call_template(self, args: Any, kws: Any) -> Any:
        if self.external is not None:
            return self.external.template, self.external.pysignature, args, kws
        if not self.overloads:
            self.compile(self.result(*self.arguments))
            # a call with other types is an error or a conversion, not a second copy
            self.disable_compile()
        return super().get_call_template(args, kws)

    def get_overload(self, sig: Any) -> Any:
        return super().get_overload(sig) if self.external is None else self.external.key


class EntryKernel(Kernel):
    """A kernel that Python calls: as machine code from its group's object."""

    def __init__(self, function: Callable[..., Any], signature: Any, group: Group) -> None:
        super().__init__(function, signature)
        self.call = Entry(group, function.__name__)

    def __call__(self, *arguments: int) -> int:
        return self.call(*arguments)


def _registered(made: Kernel) -> Kernel:
    registry[made.symbol] = made
    return made


def kernel(signature: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a compiled function for other kernels, with exactly one signature."""
    return lambda function: _registered(Kernel(function, signature))


def hook(signature: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a kernel that a user's file may replace."""
    return lambda function: _registered(Kernel(function, signature, is_hook=True))


def limit_answers(least: int, most: int, *hooks: Any) -> None:
    """Have what stand-ins for these hooks return brought within limits; a build with checks ends with a line instead.
    The package's own kernels need no such code."""
    for each in hooks:
        each.answers = least, most


def allow_writing(record: Any, field: str, *hooks: Any) -> None:
    """Let stand-ins for these hooks assign to a field of a record. All others only read."""
    for each in hooks:
        each.writes |= {(record, field)}


def memory(signature: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a kernel that gives a user's file memory of its own: as much as its line `WORDS = N` says."""
    return lambda function: _registered(Kernel(function, signature, is_memory=True))


def replaces(original: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a kernel that stands in for a hook, with its signature, in searches that have the kernel's file.

    It may call the original. Raises PlugInError for what is no hook, and for a function of other arguments.
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
    """Return the line of a function's `def`, below its decorators."""
    try:
        lines, first = inspect.getsourcelines(function)
    except OSError:  # made by `exec`
        return function.__code__.co_firstlineno
    return first + next((number for number, line in enumerate(lines) if line.lstrip().startswith("def ")), 0)


def entry(signature: Any, group: Group | None = None) -> Callable[[Callable[..., Any]], Any]:
    """Return a compiled function that Python calls; takes and returns integers only.

    group: names the function's module among its modules; None: a group of that module alone.
    """
    return lambda function: _registered(EntryKernel(function, signature, group or group_of(function.__module__)))
