"""Compiled kernels as Python calls them: loaded from the cache in milliseconds, compiled when there are none.

Python calls an `Entry`; entries that are used together make a `Group`, whose machine code is one object file. A group
is declared beside those who call it (`*_entries.py` of a room) and names the modules that hold its kernels; nobody has
to import these, or numba, to call it. The first call of an entry loads its group; `load` does it for several groups,
and says what is going on.

An entry takes and returns 64-bit integers and is called through ctypes, which lets go of Python's global lock
meanwhile. Compiling is done by a process of its own (`psearch_core.toolchain.compiler`, started by
`compiler_client.py`), placing an object in memory by `machine_code.py`.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from psearch_core.toolchain import kernel_cache, machine_code
from psearch_core.toolchain.kernel_cache import KernelError as KernelError
from psearch_core.toolchain.kernel_cache import Object, PlugIn, Recipe
from psearch_core.toolchain.kernel_cache import PlugInError as PlugInError
from psearch_core.toolchain.kernel_cache import Progress as Progress

_lock = threading.RLock()
_groups: dict[str, Group] = {}


class Entry:
    """A compiled function that takes and returns 64-bit integers; loads its group when it is first called."""

    def __init__(self, group: Group, name: str) -> None:
        self.group = group
        self.name = name
        self._function: Any = None

    def __call__(self, *arguments: int) -> int:
        if self._function is None:
            self._function = self.group.function(self.name)
        return int(self._function(*arguments))


class Group:
    """Kernels that are compiled, kept and loaded together.

    name: of the object file; modules: those that define its entries; replaced: kernels of which this group has
    another version, symbol by symbol, for studies, and for tests of what calls them. A stand-in may call the kernel
    that it replaces. plug_in: a user's file that replaces some, too; adapter: see `Recipe`.
    """

    def __init__(
        self,
        name: str,
        *modules: str,
        replaced: Mapping[str, str] | None = None,
        plug_in: PlugIn | None = None,
        adapter: str = "",
    ) -> None:
        if name in _groups:
            raise AssertionError(f"there are two groups of kernels named {name}")
        self.name = name
        self.recipe = Recipe(modules, dict(replaced or {}), adapter, plug_in)
        self._functions: dict[str, Any] = {}
        self._object: Object | None = None
        """with a user's file, which another process may not find as it was"""
        _groups[name] = self

    @property
    def is_loaded(self) -> bool:
        return bool(self._functions)

    def entry(self, name: str) -> Entry:
        """Return one of its functions, which need not be there yet."""
        return Entry(self, name)

    def function(self, name: str) -> Any:
        """Return the machine code of an entry; loads, or compiles, the group."""
        if not self._functions:
            load(self)
        return self._functions[name]

    def packed(self) -> bytes:
        """Return what `take_packed` takes, of a group that is loaded; empty without a user's file: every process has
        the package's own kernels."""
        return b"" if self._object is None else kernel_cache.packed(self._object)

    def take_packed(self, content: bytes) -> None:
        """Load what another process of this program has packed. Raises KernelError when the system refuses."""
        if not self._functions:
            self._take(kernel_cache.unpacked(self.name, content))

    def _take(self, found: Object) -> None:
        """Place its machine code. Raises KernelError when the system refuses."""
        functions = functions_of(found)
        if self.recipe.plug_in is not None:
            self._object = found
        self._functions = functions


def functions_of(found: Object) -> dict[str, Any]:
    """Place machine code in this process; returns its entries. Raises KernelError when the system refuses."""
    try:
        addresses = machine_code.place(found.code, [f"entry_{name}" for name in found.entries])
    except OSError as error:
        raise KernelError(f"the kernels cannot be loaded: {error.strerror or error}") from error
    functions = {}
    for name, arguments in found.entries.items():
        prototype = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * arguments)
        functions[name] = prototype(addresses[f"entry_{name}"])
    return functions


def group_of(module: str) -> Group:
    """Return the group of a module that belongs to no other."""
    return _groups[module] if module in _groups else Group(module, module)


@cache
def key() -> str:
    """Return the key of this program's folder in the cache; the same to its end."""
    return kernel_cache.environment_key(kernel_cache.processor())


def cache_environment() -> dict[str, str]:
    """Return the environment variables by which another process finds the cache that this one uses."""
    return {"PSEARCH_CACHE_DIR": kernel_cache.root()}


def load(*groups: Group, progress: Progress | None = None) -> float:
    """Make the entries of these groups callable; compile those that are not in the cache. Returns seconds.

    Safe when several programs start at once: one compiles, the others wait and then load. Safe in several threads, too.
    `progress` gets one line at a time while compiling, and nothing when all is loaded. Raises KernelError.
    """
    start = time.perf_counter()
    with _lock:
        missing = _not_in_cache([group for group in groups if not group.is_loaded])
        if missing:
            _compile(missing, progress)
    return time.perf_counter() - start


def cached(group: Group, hashes: dict[str, str] | None = None) -> Object | None:
    """Return the group's machine code from the cache, if none of its files has changed. hashes: found already, by path;
    filled on the way. Raises KernelError for a cache that cannot be trusted."""
    return _kept(group, kernel_cache.open_folder(key()), {} if hashes is None else hashes)


def _kept(group: Group, folder: str, hashes: dict[str, str] | None) -> Object | None:
    name = kernel_cache.recorded_object(folder, group.name, group.recipe, hashes)
    return None if name is None else kernel_cache.read_object(folder, name)


def _not_in_cache(groups: Sequence[Group]) -> list[Group]:
    """Load what there is; what is left."""
    hashes: dict[str, str] = {}
    missing = []
    for group in groups:
        found = cached(group, hashes)
        if found is None:
            missing.append(group)
        else:
            group._take(found)
    return missing


def _compile(groups: Sequence[Group], progress: Progress | None) -> None:
    """In another process: this one may have threads, and need not carry numba with it."""
    from psearch_core.toolchain.compiler_client import compile_groups, compile_turn  # a warm start does without

    folder = kernel_cache.open_folder(key(), make=True)
    with compile_turn(folder, progress):
        missing = _not_in_cache(groups)  # another program may have compiled them while this one waited
        by_plug_in: dict[PlugIn | None, list[Group]] = {}
        for group in missing:
            by_plug_in.setdefault(group.recipe.plug_in, []).append(group)
        # a process for each user's file: what it imports, and what it does, is its own affair
        for members in by_plug_in.values():
            compile_groups(folder, {group.name: group.recipe for group in members}, progress)
            for group in members:
                found = _kept(group, folder, None)  # also where somebody has edited files meanwhile
                if found is None:
                    raise kernel_cache.refusal(folder, f"the kernels of {group.name} have gone")
                group._take(found)
    if missing:
        kernel_cache.prune()
