"""Groups of kernels that Python calls: loaded from the cache in milliseconds, or else compiled.

Python calls an `Entry`; entries that are used together make a `Group`, whose machine code is one object file. A group
is declared next to its callers (in the `*_entries.py` of a package) and names the modules that hold its kernels. To
call it, neither these modules nor numba are imported. The first call of an entry loads its group; `load` loads several
groups and reports progress.

An entry takes and returns 64-bit integers and is called through ctypes, which releases Python's global lock. Another
process compiles (`psearch_core.toolchain.compiler`, started by `compiler_client.py`); `machine_code.py` places objects
in memory.
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
    """A compiled function that takes and returns 64-bit integers. The first call loads its group."""

    def __init__(self, group: Group, name: str) -> None:
        self.group = group
        self.name = name
        self._function: Any = None

    def __call__(self, *arguments: int) -> int:
        if self._function is None:
            self._function = self.group.function(self.name)
        return int(self._function(*arguments))


class Group:
    """Kernels that are compiled, cached and loaded together.

    name: name of the object file; modules: modules that define the entries; replaced: symbols of kernels, and of those
    that stand in for them, for studies and tests. A stand-in may call the kernel that it replaces. plug_in: a user's
    file that replaces kernels, too; adapter: see `Recipe`.
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
        """The group's object, kept only if a user's file is in it: another process may find the file changed."""
        _groups[name] = self

    @property
    def is_loaded(self) -> bool:
        return bool(self._functions)

    def entry(self, name: str) -> Entry:
        """Return an entry of this group, which need not be loaded yet."""
        return Entry(self, name)

    def function(self, name: str) -> Any:
        """Return the machine code of an entry; loads or compiles the group first."""
        if not self._functions:
            load(self)
        return self._functions[name]

    def packed(self) -> bytes:
        """Return a loaded group for `take_packed` in another process; empty without a user's file, since every process
        has the package's own kernels."""
        return b"" if self._object is None else kernel_cache.packed(self._object)

    def take_packed(self, content: bytes) -> None:
        """Load the group that another process of this program has packed. Raises KernelError if the system refuses."""
        if not self._functions:
            self._take(kernel_cache.unpacked(self.name, content))

    def _take(self, found: Object) -> None:
        """Place the group's machine code in memory. Raises KernelError if the system refuses."""
        functions = functions_of(found)
        if self.recipe.plug_in is not None:
            self._object = found
        self._functions = functions


def functions_of(found: Object) -> dict[str, Any]:
    """Place machine code in this process and return its entries by name. Raises KernelError if the system refuses."""
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
    """Return the group of a module that belongs to no other group."""
    return _groups[module] if module in _groups else Group(module, module)


@cache
def key() -> str:
    """Return the key of this program's folder in the cache, which does not change while the program runs."""
    return kernel_cache.environment_key(kernel_cache.processor())


def cache_environment() -> dict[str, str]:
    """Return the environment variables by which another process finds the cache that this one uses."""
    return {"PSEARCH_CACHE_DIR": kernel_cache.root()}


def load(*groups: Group, progress: Progress | None = None) -> float:
    """Load these groups, compiling those that are not in the cache. Returns the seconds that it took.

    Several programs may start at once: one compiles, the others wait and then load. Threads may call this, too.
    `progress` is called with a line for each compiled part, and not at all if nothing is compiled. Raises KernelError.
    """
    start = time.perf_counter()
    with _lock:
        missing = _not_in_cache([group for group in groups if not group.is_loaded])
        if missing:
            _compile(missing, progress)
    return time.perf_counter() - start


def cached(group: Group, hashes: dict[str, str] | None = None) -> Object | None:
    """Return the group's machine code from the cache if none of its source files has changed, else None. hashes: known
    hashes of files by path; more are added. Raises KernelError for a cache that cannot be trusted."""
    return _kept(group, kernel_cache.open_folder(key()), {} if hashes is None else hashes)


def _kept(group: Group, folder: str, hashes: dict[str, str] | None) -> Object | None:
    name = kernel_cache.recorded_object(folder, group.name, group.recipe, hashes)
    return None if name is None else kernel_cache.read_object(folder, name)


def _not_in_cache(groups: Sequence[Group]) -> list[Group]:
    """Load the groups that are in the cache; return the others."""
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
    """Compile groups in another process, since this one may have threads and should not import numba; load them."""
    from psearch_core.toolchain.compiler_client import compile_groups, compile_turn  # a warm start needs neither

    folder = kernel_cache.open_folder(key(), make=True)
    with compile_turn(folder, progress):
        missing = _not_in_cache(groups)  # another program may have compiled them while this one waited
        by_plug_in: dict[PlugIn | None, list[Group]] = {}
        for group in missing:
            by_plug_in.setdefault(group.recipe.plug_in, []).append(group)
        # one process for each user's file: it may import and do anything
        for members in by_plug_in.values():
            compile_groups(folder, {group.name: group.recipe for group in members}, progress)
            for group in members:
                found = _kept(group, folder, None)  # valid even if source files have been edited meanwhile
                if found is None:
                    raise kernel_cache.refusal(folder, f"the kernels of {group.name} have disappeared")
                group._take(found)
    if missing:
        kernel_cache.prune()
