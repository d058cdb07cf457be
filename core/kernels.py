"""Compiled kernels as Python calls them: loaded from the cache in milliseconds, compiled when there are none.

Python calls an `Entry`; entries that are used together make a `Group`, whose machine code is one object file. A group
is declared beside those who call it (`entries.py` of a room) and names the modules that hold its kernels; nobody has to
import these, or numba, to call it. The first call of an entry loads its group; `load` does it for several groups, and
says what is going on.

An entry takes and returns 64-bit integers and is called through ctypes, which lets go of Python's global lock
meanwhile. Compiling is done by a process of its own (`psearch.core.compiler`), placing an object in memory by
`machine_code.py`.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from psearch.core import kernel_cache, machine_code
from psearch.core.kernel_cache import Progress as Progress

_lock = threading.RLock()
_groups: dict[str, Group] = {}
_folder: Path | None = None
_COMPILER = (
    "import sys; sys.path[:] = {path!r}; from psearch.core.compiler.build import main; "
    "raise SystemExit(main({folder!r}, {groups!r}))"
)


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
    another version, symbol by symbol, in tests of what calls them.
    """

    def __init__(self, name: str, *modules: str, replaced: Mapping[str, str] | None = None) -> None:
        if name in _groups:
            raise AssertionError(f"there are two groups of kernels named {name}")
        self.name = name
        self.modules = modules
        self.replaced = dict(replaced or {})
        self._functions: dict[str, Any] = {}
        _groups[name] = self

    @property
    def is_loaded(self) -> bool:
        return bool(self._functions)

    def entry(self, name: str) -> Entry:
        """One of its functions, which need not be there yet."""
        return Entry(self, name)

    def function(self, name: str) -> Any:
        """The machine code of an entry; loads, or compiles, the group."""
        if not self._functions:
            load(self)
        return self._functions[name]

    def _take(self, entries: dict[str, int], code: bytes) -> None:
        """entries: name and number of arguments of each function."""
        addresses = machine_code.place(code, [f"psearch_{name}" for name in entries])
        functions = {}
        for name, arguments in entries.items():
            prototype = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * arguments)
            functions[name] = prototype(addresses[f"psearch_{name}"])
        self._functions = functions


def group_of(module: str) -> Group:
    """The group of a module that belongs to no other."""
    return _groups[module] if module in _groups else Group(module, module)


def folder() -> Path:
    """The cache folder of this program; the same to its end."""
    global _folder
    with _lock:
        if _folder is None:
            _folder = kernel_cache.cache_folder(kernel_cache.environment_key(kernel_cache.processor()))
        return _folder


def load(*groups: Group, progress: Progress | None = None) -> float:
    """Make the entries of these groups callable; compile those that are not in the cache. Returns seconds.

    Safe when several programs start at once: one compiles, the others wait and then load. Safe in several threads, too.
    `progress` gets one line at a time while compiling, and nothing when all is loaded. Raises RuntimeError with the
    compiler's words when it fails.
    """
    start = time.perf_counter()
    with _lock:
        hashes: dict[str, str] = {}
        missing = [group for group in groups if not group.is_loaded and not _load_recorded(group, hashes)]
        if missing:
            with kernel_cache.compile_lock(folder(), progress):
                _load_or_compile(missing, progress)
    return time.perf_counter() - start


def _load_or_compile(groups: Sequence[Group], progress: Progress | None) -> None:
    """Under the lock: another program may have compiled them while this one waited."""
    hashes: dict[str, str] = {}
    missing = [group for group in groups if not _load_recorded(group, hashes)]
    if not missing:
        return
    _compile(missing, progress)
    hashes = {}
    for group in missing:
        if not _load_recorded(group, hashes):
            raise RuntimeError(f"the compiler left no kernels of {group.name}")
    kernel_cache.prune(folder())


def _load_recorded(group: Group, hashes: dict[str, str]) -> bool:
    name = kernel_cache.recorded_object(folder(), group.name, hashes)
    found = None if name is None else kernel_cache.read_object(folder(), name)
    if found is None:
        return False
    group._take(*found)
    return True


def _compile(groups: Sequence[Group], progress: Progress | None) -> None:
    """In another process: this one may have threads, and need not carry numba with it."""
    import subprocess  # not at the head: a warm start does without

    wanted = {group.name: (group.modules, group.replaced) for group in groups}
    program = _COMPILER.format(path=sys.path, folder=str(folder()), groups=wanted)
    flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]  # no public twin; multiprocessing calls it too
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}  # numpy starts no threads in a process that forks
    with subprocess.Popen(
        [sys.executable, *flags, "-c", program],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            lines, words = process.stdout, process.stderr
            assert lines is not None and words is not None
            errors: list[str] = []
            reader = threading.Thread(target=lambda: errors.append(words.read()), daemon=True)
            reader.start()
            for line in lines:
                if progress:
                    progress(json.loads(line))
            reader.join()
        except BaseException:
            process.kill()
            raise
    if process.returncode:
        raise RuntimeError(f"compiling the kernels failed\n{errors[0].strip()}")
