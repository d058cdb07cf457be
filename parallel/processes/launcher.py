"""Starts the worker processes of an arena, from any program.

With a single thread this process forks workers itself: they inherit the compiled kernels. With more (a GUI, Jupyter,
a server, the UCI loop) it has a fork server do it (`fork_client.py`). In neither case does a worker import the
program's `__main__`.
"""

from __future__ import annotations

import resource
import threading
from multiprocessing.connection import Pipe

from psearch.arena.arena import Arena
from psearch.processes.fork import fork_worker
from psearch.processes.worker_process import ForkedWorker, WorkerProcess
from psearch.results import PsearchError

START_METHODS = ("fork", "forkserver")
_FILES_PER_WORKER = 4
_OTHER_FILES = 256


def fork_is_safe() -> bool:
    """Fork is quick, but in a program with threads the copy may find locks held by threads that it does not have."""
    return threading.active_count() == 1


def safe_start_method() -> str:
    """For multiprocess: fork is quick and inherits the compiled kernels, but is unsafe once there are threads."""
    return "fork" if fork_is_safe() else "spawn"


def prepare_launch() -> None:
    """Start the fork server if this program will need one, without waiting: its kernels load while ours do."""
    if not fork_is_safe():
        from psearch.processes.fork_client import fork_server

        fork_server()


def launch(arena: Arena, workers: list[WorkerProcess], start_method: str | None = None) -> None:
    """Start the workers of an arena and append them to `workers`, also those of a start that fails halfway.

    start_method: `fork`, `forkserver`, or None to choose. Raises OSError or PsearchError when the system refuses.
    """
    _allow_open_files(_FILES_PER_WORKER * arena.workers)
    method = start_method or ("fork" if fork_is_safe() else "forkserver")
    if method not in START_METHODS:
        raise PsearchError(f"start_method must be one of {', '.join(START_METHODS)}, not {method!r}")
    if method == "fork":
        for index in range(arena.workers):
            ours, theirs = Pipe()
            inherited = [*(worker.pipe for worker in workers), ours]
            with theirs:
                pid = fork_worker(arena, index, theirs, inherited)
            workers.append(ForkedWorker(index, pid, ours))
    else:
        from psearch.processes.fork_client import fork_server

        fork_server().launch(arena, workers)


def _allow_open_files(more: int) -> None:
    """Raise this process's own limit of open files, if it is in the way, as far as the system lets it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = more + _OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        limit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
