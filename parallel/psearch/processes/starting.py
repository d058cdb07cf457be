"""Start of workers and other processes, from any program.

A program with a single thread forks them, so that they inherit the compiled kernels. One with more threads (a GUI,
Jupyter, a server, the UCI loop) uses a fork server (`fork_server`). A worker never imports the program's `__main__`.
"""

from __future__ import annotations

import os
import resource
import threading
import time
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection, Pipe
from typing import TYPE_CHECKING

from psearch.arena.arena import Arena
from psearch.arena.system_calls import refusal
from psearch.processes.child import ChildProcess
from psearch.processes.lifetime import fork, fork_process
from psearch.processes.patience import SERVER_SEARCH_S, SERVER_START_S
from psearch.processes.worker_main import worker_main
from psearch.results import PsearchError

if TYPE_CHECKING:
    from psearch.processes.fork_server import ForkServer

START_METHODS = ("fork", "forkserver")
_WORKER = "psearch.processes.worker_main:served_main"
_LOOK_INTERVAL_S = 0.005
_FILES_PER_WORKER = 2
"""Descriptors of a worker: a pipe and a pidfd."""
_SPARE_FILES = 64
"""Descriptors left for files that the program opens meanwhile."""
_USUAL_FILES = 192
"""Assumed number of open descriptors where there is no /proc."""


def fork_is_safe() -> bool:
    """Tell whether this program can fork. With several threads it cannot: a lock that another thread holds would stay
    locked in the copy.

    Only Python's threads count. Other threads cannot be distinguished from numpy's, which nearly every program has and
    which survive a fork; and a worker calls only kernels and Python. A program whose native threads hold Python's locks
    (one that embeds it) should pass `start_method="forkserver"`.
    """
    return threading.active_count() == 1


def prepare_launch() -> None:
    """Start the fork server if this program will need one, without waiting for it to load its kernels."""
    if not fork_is_safe():
        from psearch.processes.fork_server import fork_server

        fork_server()


def _usual_method() -> str:
    return "fork" if fork_is_safe() else "forkserver"


def launch(
    arena: Arena,
    workers: list[ChildProcess],
    start_method: str | None = None,
    may_start: Callable[[], bool] | None = None,
) -> None:
    """Start the workers of an arena and append each to `workers`, even if the start fails halfway.

    start_method: `fork`, `forkserver`, or None to choose; may_start: called before each start; False abandons the rest.
    Raises PsearchError then, and when the system refuses.
    """
    method = start_method or _usual_method()
    if method not in START_METHODS:
        raise PsearchError(f"start_method must be one of {', '.join(START_METHODS)}, not {method!r}")
    try:
        _allow_open_files(_FILES_PER_WORKER * arena.workers + _SPARE_FILES)
        server = None if method == "fork" else _ready_server(may_start)
        code = b"" if server is None else arena.driver.packed()
        for index in range(arena.workers):
            check_time(may_start)
            if server is None:
                workers.append(_started(index, partial(_fork_worker, arena, index)))
            else:
                workers.append(_started(index, partial(server.fork, _WORKER, arena.descriptors()), server))
                workers[-1].send((index, arena.layout(), code))
    except (OSError, MemoryError) as error:
        raise PsearchError(f"cannot start {arena.workers} worker processes: {refusal(error)}") from error


def launch_process(index: int, target: str) -> ChildProcess:
    """Start a process that calls a function, `module:name`, with its end of a pipe and its parent's process number.

    It ends with its parent, and does not import `__main__`. index: number for the caller. Raises PsearchError.
    """
    try:
        _allow_open_files(_FILES_PER_WORKER + _SPARE_FILES)
        if _usual_method() == "fork":
            return _started(index, partial(fork_process, target, ()))
        server = _ready_server()
        return _started(index, partial(server.fork, target, ()), server)
    except (OSError, MemoryError) as error:
        raise PsearchError(f"cannot start a process: {refusal(error)}") from error


def _ready_server(may_start: Callable[[], bool] | None = None) -> ForkServer:
    """Wait for the fork server to load its kernels, about a second after its start, and return it. Replace one that has
    ended or is stopped. Raises PsearchError when there is no time for that."""
    from psearch.processes.fork_server import fork_server

    deadline = time.monotonic() + (SERVER_START_S if may_start is None else SERVER_SEARCH_S)
    server = fork_server()
    while not server.is_ready(_LOOK_INTERVAL_S):  # which raises if it has ended: another one would end, too
        check_time(may_start)
        if time.monotonic() > deadline:
            raise PsearchError("the process that starts workers is not ready")
        if server.process.is_halted:
            server = fork_server()
    return server


def check_time(may_start: Callable[[], bool] | None) -> None:
    """Raise PsearchError if `may_start` returns False."""
    if may_start is not None and not may_start():
        raise PsearchError("there was no time to start workers")


def _started(index: int, fork: Callable[[int], int], server: ForkServer | None = None) -> ChildProcess:
    """Return a new process with this end of its pipe. fork: takes the other end, and returns the process number."""
    ours, theirs = Pipe()
    with theirs:
        try:
            return ChildProcess(index, fork(theirs.fileno()), ours, server)
        except BaseException:
            ours.close()
            raise


def _allow_open_files(more: int) -> None:
    """Raise this process's soft limit of open files, if it is too low, as far as the system allows.

    The limit stays raised, since a process with descriptors above its limit cannot open any other file.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        wanted = len(os.listdir("/proc/self/fd")) + more
    except OSError:
        wanted = _USUAL_FILES + more
    if soft != resource.RLIM_INFINITY and soft < wanted:
        limit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))


def _fork_worker(arena: Arena, index: int, pipe: int) -> int:
    """Fork a worker with the arena that this process has mapped; see `fork`."""
    return fork(lambda parent: worker_main(arena, index, Connection(pipe), parent), [pipe], arena.descriptors())
