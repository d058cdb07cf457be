"""The program's side of compiling: one program compiles at a time, in a process that writes files into the cache."""

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
    """`sys.executable` is the program itself, or nothing; the text is its name, quoted."""


def python_command(mark: str) -> list[str]:
    """Return this Python with the flags it was started with: an isolated one stays isolated.

    mark: the environment variable that is set in what is started, so that a program that is started in the place of
    an interpreter does not start itself again. Raises NotPython there, in a frozen program, and in one that embeds
    Python.
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
"""Set in the compiler's environment: where the interpreter is the program itself, it must not start another."""
_MOST_PROCESSES = 16
_POLL_S = 0.2
_PATIENCE_S = 300.0
"""Longest time without a report. One group takes some 10 s on a core of 2020."""
_IMPORT_S = 30.0
"""Longest time for the import of a user's file."""
_LOCK_PATIENCE_S = 30.0
"""A holder that compiles shows it sooner. File systems of a network may show it many seconds late."""
_MOST_WORDS = 400
_MOST_ERRORS = 1 << 16


class _Killed(Exception):
    """The compiler was killed, or one of its processes: perhaps memory was short."""


@contextlib.contextmanager
def compile_turn(folder: str, progress: Progress | None = None) -> Iterator[None]:
    """Wait for the turn to compile into a folder.

    The lock is gone with the program that holds it. One that is stopped keeps it: so whoever sees nothing happen in the
    folder for long goes on without it, as every program does where locks do not work.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(os.path.join(folder, "lock"), poll_interval=_POLL_S)
    before = seen = None
    while not lock.is_locked:
        try:
            lock.acquire(timeout=0 if seen is None else _LOCK_PATIENCE_S)
        except Timeout:
            # compared with itself, not with a clock: that of a file server may be another
            before, seen = seen, os.stat(folder).st_mtime_ns
            if before == seen:
                break
            if before is None and progress:
                progress("waiting for another program that is compiling the kernels")
        except (OSError, NotImplementedError):
            break
    try:
        yield
    finally:
        lock.release()


def compile_groups(folder: str, recipes: Mapping[str, Recipe], progress: Progress | None) -> None:
    """Compile groups, by name, into a folder of the cache; all of them with the same user's file, or with none.

    Raises KernelError, PlugInError where a user's file is to blame.
    """
    try:
        try:
            _compile(folder, recipes, _MOST_PROCESSES, progress)
        except _Killed:
            # alone it needs less memory, and what was done is kept
            _compile(folder, recipes, 1, progress)
    except _Killed as error:
        raise KernelError(f"compiling the kernels failed: {error}") from error


def _compile(folder: str, recipes: Mapping[str, Recipe], most_processes: int, progress: Progress | None) -> None:
    """Have a process compile. Raises KernelError, and _Killed when another try may help."""
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
            # not to the ends of the pipes: what the user's file has started may hold them
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_POLL_S)
            with contextlib.suppress(OSError):
                os.utime(folder)  # for those who wait for their turn
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
                raise PlugInError(f"{importing}: to import it takes more than {_IMPORT_S:.0f} s")
            if silent_s > _PATIENCE_S:
                raise KernelError(f"compiling the kernels failed: the compiler does nothing for {_PATIENCE_S:.0f} s")
    if importing:
        raise PlugInError(f"{importing}: it ended the process that imported it")
    if process.returncode < 0:
        raise _Killed(f"the compiler was ended by signal {-process.returncode}; perhaps there is too little memory")
    if process.returncode:
        words = errors.decode(errors="replace").strip().rpartition("\n")[2]
        raise _failure(f"compiling the kernels failed: {words or 'the compiler ended without a word'}", errors)


def _start(folder: str, recipes: Mapping[str, Recipe], most_processes: int) -> subprocess.Popen[bytes]:
    try:
        python = python_command(_STARTED_BY)
    except NotPython as other:
        text = f"the kernels need a Python interpreter to compile them, and sys.executable is {other}"
        raise KernelError(text) from None
    # the compiler works in another folder
    path = [os.path.abspath(place) if not place or os.path.exists(place) else place for place in sys.path]
    program = _PROGRAM.format(
        path=path, folder=folder, recipes=dict(recipes), most_processes=most_processes, parent=os.getpid()
    )
    # numba's own switches are for the host program: some change the machine code, some break it
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    environment["OPENBLAS_NUM_THREADS"] = "1"  # numpy starts no threads in a process that forks
    environment[_STARTED_BY] = "1"
    try:
        process = subprocess.Popen(
            [*python, "-c", program],
            cwd="/",  # numba reads a file of settings in the working folder
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
