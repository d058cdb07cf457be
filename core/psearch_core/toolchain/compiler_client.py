"""Starts the compiler, a process that writes files into the cache, and waits for it. One program compiles at a time."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping

from psearch_core.toolchain.kernel_cache import KernelError, PlugInError, Progress, Recipe


class NotPython(Exception):
    """`sys.executable` is not a Python interpreter; the text is its quoted name."""


def module_places() -> list[str]:
    """Return the entries of `sys.path` that Python looks into: it ignores those that are no text."""
    return [place for place in sys.path if isinstance(place, str)]


def python_command(mark: str) -> list[str]:
    """Return the command that starts this Python interpreter with the same flags; an isolated one stays isolated.

    mark: the environment variable that the caller sets in the new process. If it is already set, `sys.executable` is no
    interpreter but this program, which must not start itself again. Raises NotPython then, in a frozen program, and in
    one that embeds Python.
    """
    name = os.path.basename(sys.executable or "")
    if mark in os.environ or getattr(sys, "frozen", False) or "py" not in name.lower():
        raise NotPython(repr(name))
    flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]  # no public twin; multiprocessing calls it too
    return [sys.executable, *flags]


_PROGRAM = (
    "import sys; sys.path[:] = {path!r}; from psearch_core.toolchain.compiler.build import main; "
    "from psearch_core.toolchain.kernel_cache import PlugIn, Recipe; "
    "raise SystemExit(main({folder!r}, {recipes!r}, {most_processes}, {parent}))"
)
_STARTED_BY = "PSEARCH_COMPILING"
"""Environment variable set for the compiler; see `python_command`."""
_MOST_PROCESSES = 16
_POLL_S = 0.2
_PATIENCE_S = 300.0
"""Longest wait for a message, in seconds. One group takes about 10 s on a processor of 2020."""
_IMPORT_S = 30.0
"""Longest time that the import of a user's file may take, in seconds."""
_LOCK_PATIENCE_S = 30.0
"""Longest wait for a sign that another program is compiling, in seconds. Network file systems may show it late."""
_MOST_WORDS = 400
_MOST_ERRORS = 1 << 16


class _Killed(Exception):
    """The compiler or one of its processes was killed, perhaps because memory was short."""


@contextlib.contextmanager
def compile_turn(folder: str, progress: Progress | None = None) -> Iterator[None]:
    """Wait for the turn to compile into a folder.

    The lock disappears with the program that holds it, but a program that is stopped keeps it. So if nothing happens in
    the folder for long, we continue without the lock, and also where locks do not work.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(os.path.join(folder, "lock"), poll_interval=_POLL_S)
    before = seen = None
    while not lock.is_locked:
        try:
            lock.acquire(timeout=0 if seen is None else _LOCK_PATIENCE_S)
        except Timeout:
            # compare the time with its earlier value: the clock of a file server may differ from ours
            before, seen = seen, os.stat(folder).st_mtime_ns
            if before == seen:
                break
            if before is None and progress:
                progress("waiting for another program that is compiling the kernels")
        except (OSError, NotImplementedError):  # no locks here: compile beside others, files are replaced whole
            break
    try:
        yield
    finally:
        lock.release()


def compile_groups(folder: str, recipes: Mapping[str, Recipe], progress: Progress | None) -> None:
    """Compile groups (by name) into a folder of the cache; all have the same user's file, or none.

    Raises PlugInError for a mistake in the user's file, KernelError for anything else.
    """
    try:
        try:
            _compile(folder, recipes, _MOST_PROCESSES, progress)
        except _Killed:
            # a single process needs less memory, and finished parts are kept
            _compile(folder, recipes, 1, progress)
    except _Killed as error:
        raise KernelError(f"compiling the kernels failed: {error}") from error


def _compile(folder: str, recipes: Mapping[str, Recipe], most_processes: int, progress: Progress | None) -> None:
    """Compile in another process. Raises KernelError, or _Killed when another try may help."""
    start = time.monotonic()
    process = _start(folder, recipes, most_processes)
    assert process.stdout is not None and process.stderr is not None
    report = errors = b""
    done = total = 0
    importing = ""
    silent_s = 0.0
    with contextlib.ExitStack() as stack:
        stack.enter_context(process)
        stack.callback(process.kill)
        while process.returncode is None:
            # do not read to the ends of the pipes: processes that the user's file has started may hold them open
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_POLL_S)
            with contextlib.suppress(OSError):
                os.utime(folder)  # shows other programs that this one is compiling
            silent_s += _POLL_S
            *lines, report = (report + (process.stdout.read() or b"")).split(b"\n")
            errors = (errors + (process.stderr.read() or b""))[-_MOST_ERRORS:]
            for kind, text in map(json.loads, lines):
                silent_s = 0.0
                if kind == "total":
                    total = int(text)
                elif kind == "done":
                    done += 1
                    if progress:
                        progress(f"compiling kernels, once: {done}/{total} {text} ({time.monotonic() - start:.0f} s)")
                elif kind == "importing":
                    importing = text
                elif kind == "mistake":
                    raise PlugInError(text)
                elif kind == "killed":
                    raise _Killed(text)
                else:
                    raise _failure(text, errors)
            if importing and silent_s > _IMPORT_S:
                raise PlugInError(f"{importing}: importing it takes more than {_IMPORT_S:.0f} s")
            if silent_s > _PATIENCE_S:
                raise KernelError(f"compiling the kernels failed: no message from the compiler for {_PATIENCE_S:.0f} s")
    if importing:
        raise PlugInError(f"{importing}: it ended the process that imported it")
    if process.returncode < 0:
        raise _Killed(f"the compiler was ended by signal {-process.returncode}; perhaps there is too little memory")
    if process.returncode:
        words = errors.decode(errors="replace").strip().rpartition("\n")[2]
        raise _failure(f"compiling the kernels failed: {words or 'the compiler ended without a message'}", errors)


def _start(folder: str, recipes: Mapping[str, Recipe], most_processes: int) -> subprocess.Popen[bytes]:
    try:
        python = python_command(_STARTED_BY)
    except NotPython as other:
        text = f"the kernels need a Python interpreter to compile them, and sys.executable is {other}"
        raise KernelError(text) from None
    # absolute paths, since the compiler runs in another folder
    path = [os.path.abspath(place) if not place or os.path.exists(place) else place for place in module_places()]
    program = _PROGRAM.format(
        path=path, folder=folder, recipes=dict(recipes), most_processes=most_processes, parent=os.getpid()
    )
    # numba's environment variables are meant for the host program; some would change or break the machine code
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    environment["OPENBLAS_NUM_THREADS"] = "1"  # a process that forks must not have threads of numpy
    environment[_STARTED_BY] = "1"
    try:
        process = subprocess.Popen(
            [*python, "-c", program],
            cwd="/",  # numba would read a settings file in the working folder
            env=environment,
            bufsize=0,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
    except OSError as error:
        raise KernelError(f"the compiler of the kernels cannot be started: {error.strerror}") from error
    for pipe in (process.stdout, process.stderr):
        assert pipe is not None
        os.set_blocking(pipe.fileno(), False)
    return process


def _failure(text: str, errors: bytes) -> KernelError:
    failure = KernelError(" ".join(text.split())[:_MOST_WORDS])
    failure.add_note(errors.decode(errors="replace"))
    return failure
