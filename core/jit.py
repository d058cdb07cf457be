"""The one place that knows how kernels are compiled, cached and loaded.

Two decorators own all numba options:

- `@kernel(signature)` marks a compiled function that only other kernels call. It is compiled when an entry that
  needs it is compiled and leaves no file of its own.
- `@entry(signature)` marks a function that Python calls. Its machine code, with everything it calls, is cached.

numba does not notice a change in a callee that lives in another file, so the cache folder is keyed by a hash of all
kernel sources (and of everything else that numba's own index depends on). A file in it names the entries that are
complete: only those are loaded without compiling.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import stat
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding
import numba
import numpy as np

Progress = Callable[[str], None]

# error_model="numpy": an integer division needs no zero check and half the code.
# nogil: a worker inside a kernel must not block the other threads of a program that embeds us.
_OPTIONS: dict[str, Any] = {"error_model": "numpy", "nogil": True}

_PACKAGE = Path(__file__).resolve().parent
_COMPLETE = "complete"
_KEEP_FOLDERS = 4

_kernels: list[tuple[Any, Any]] = []
_entries: list[tuple[Any, Any]] = []
_loaded: set[int] = set()
_build_lock = threading.Lock()


def kernel(signature: Any) -> Callable[[Callable[..., Any]], Any]:
    """A compiled function for other kernels, with exactly one signature."""

    def decorate(function: Callable[..., Any]) -> Any:
        dispatcher = numba.njit(**_OPTIONS)(function)
        _kernels.append((dispatcher, signature))
        return dispatcher

    return decorate


def entry(signature: Any) -> Callable[[Callable[..., Any]], Any]:
    """A compiled function that Python calls; takes and returns integers only (addresses are int64)."""

    def decorate(function: Callable[..., Any]) -> Any:
        dispatcher = numba.njit(cache=True, **_OPTIONS)(function)
        _entries.append((dispatcher, signature))
        return dispatcher

    return decorate


def _kernel_sources() -> list[Path]:
    """Every file whose text can end up in machine code: all of core, and what imports this module."""
    core = sorted(_PACKAGE.rglob("*.py"))
    package = _PACKAGE.parent
    # an editable install keeps `core` beside `parallel`; a wheel keeps it inside the package
    outer = package / "parallel" if (package / "parallel").is_dir() else package
    return core + [path for path in sorted(outer.rglob("*.py")) if "psearch.core.jit" in path.read_text("utf-8")]


def _cache_key() -> str:
    digest = hashlib.sha256()
    for part in (
        numba.__version__,
        llvmlite.__version__,
        np.__version__,
        sys.version,
        llvmlite.binding.get_host_cpu_name(),
        llvmlite.binding.get_host_cpu_features().flatten(),
        os.environ.get("PSEARCH_NO_PEXT", ""),
        os.environ.get("NUMBA_BOUNDSCHECK", ""),
    ):
        digest.update(part.encode())
    for path in _kernel_sources():
        status = path.stat()
        # numba's own index compares path, time and size of an entry's file: a folder must never outlive those
        digest.update(f"{path}:{status.st_mtime_ns}:{status.st_size}".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:24]


def _is_private(folder: Path) -> bool:
    status = folder.stat()
    return status.st_uid == os.getuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _candidate_roots() -> Iterator[Path]:
    chosen = os.environ.get("PSEARCH_CACHE_DIR")
    if chosen:
        yield Path(chosen).expanduser()
    else:
        home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
        yield Path(home) / "psearch"
    yield Path(tempfile.gettempdir()) / f"psearch-{os.getuid()}"


def _cache_folder() -> Path:
    """The folder for this version of the kernels; made if need be, writable by this user alone."""
    key = _cache_key()
    for root in _candidate_roots():
        try:
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
            # The cache is unpickled: a folder that others can write to is code that others can run.
            if not _is_private(root):
                continue
            folder = root / f"kernels-{key}"
            folder.mkdir(mode=0o700, exist_ok=True)
            if os.access(folder, os.W_OK | os.X_OK):
                return folder
        except OSError:
            continue
    # of the same shape: a process of ours that is told its parent finds it
    folder = Path(tempfile.mkdtemp(prefix="psearch-")) / f"kernels-{key}"
    folder.mkdir(mode=0o700)
    return folder


CACHE_FOLDER = _cache_folder()
setattr(numba.config, "CACHE_DIR", str(CACHE_FOLDER))  # noqa: B010  # not in numba's type stubs


def is_cached() -> bool:
    """Whether every entry imported so far can be loaded without compiling."""
    return _entry_names() <= _complete_names()


def _entry_names() -> set[str]:
    return {f"{dispatcher.__module__}.{dispatcher.__name__}" for dispatcher, _ in _entries}


def _complete_names() -> set[str]:
    try:
        return set((CACHE_FOLDER / _COMPLETE).read_text("utf-8").split())
    except FileNotFoundError:
        return set()


def _mark_complete() -> None:
    """Under the lock. Another program may have imported, and completed, other entries of this version."""
    names = _complete_names() | _entry_names()
    new = CACHE_FOLDER / f"{_COMPLETE}.new"
    new.write_text("\n".join(sorted(names)) + "\n", "utf-8")
    os.replace(new, CACHE_FOLDER / _COMPLETE)


def build(progress: Progress | None = None) -> float:
    """Make every entry callable: load it from the cache, or compile the lot. Returns seconds.

    Safe when several programs start at once: one compiles behind a file lock, the others wait and then load. Safe in
    several threads, too.
    `progress` gets one line at a time while compiling, and nothing when the cache is loaded.
    """
    with _build_lock:
        return _build(progress)


def _build(progress: Progress | None) -> float:
    start = time.perf_counter()
    if all(id(dispatcher) in _loaded for dispatcher, _ in _entries):
        return 0.0
    if is_cached():
        os.utime(CACHE_FOLDER)  # for `_prune`: in use
        _load_entries()
    else:
        with open(CACHE_FOLDER / "lock", "w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if progress:
                    progress("waiting for another program that is compiling the kernels")
                fcntl.flock(lock, fcntl.LOCK_EX)
            if is_cached():
                _load_entries()
            else:
                _compile(progress, start)
                _mark_complete()
                _prune()
    return time.perf_counter() - start


def _load_entries() -> None:
    for dispatcher, signature in _entries:
        if id(dispatcher) not in _loaded:
            _make_callable(dispatcher, signature)


def _make_callable(dispatcher: Any, signature: Any) -> None:
    dispatcher.compile(signature)
    # one signature each: a call with other types is an error here, not a second copy
    dispatcher.disable_compile()
    _loaded.add(id(dispatcher))


def _compile(progress: Progress | None, start: float) -> None:
    missing = [pair for pair in _kernels + _entries if id(pair[0]) not in _loaded]
    nothing_loaded = not _loaded
    for done, (dispatcher, signature) in enumerate(missing):
        if nothing_loaded and dispatcher.signatures:
            # an earlier kernel called it with types of its own: a second copy, with other integer types
            raise AssertionError(f"kernel {dispatcher.__name__} is called above its definition")
        if progress:
            name = dispatcher.py_func.__name__
            seconds = time.perf_counter() - start
            progress(f"compiling kernels, once: {done + 1}/{len(missing)} {name} ({seconds:.0f} s)")
        _make_callable(dispatcher, signature)


def _prune() -> None:
    """Drop the folders of older versions, the least recently used first."""
    siblings = [path for path in CACHE_FOLDER.parent.glob("kernels-*") if path != CACHE_FOLDER]
    siblings.sort(key=lambda path: path.stat().st_mtime, reverse=True)
    for old in siblings[_KEEP_FOLDERS:]:
        with contextlib.suppress(OSError):
            shutil.rmtree(old)
