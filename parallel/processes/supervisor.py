"""A searcher in worker processes: takes its memory, starts its pool, and runs one search or perft at a time on it."""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import chess

from psearch.arena.arena import Arena
from psearch.core import kernels
from psearch.core.entries import PERFT
from psearch.notation.report import finished_result
from psearch.processes.pool import WorkerPool
from psearch.processes.request import SearchRequest
from psearch.results import PsearchError, Result
from psearch.scheduler.entries import load_kernels, request_stop

if TYPE_CHECKING:
    from psearch.trace.recorder import Recorder

_CLOSE_TIMEOUT_S = 2.0

_LIVE: weakref.WeakSet[Supervisor] = weakref.WeakSet()


def _close_all() -> None:
    """At exit: supervisors that were never closed."""
    for supervisor in list(_LIVE):
        supervisor.close()
    fork_client = sys.modules.get("psearch.processes.fork_client")
    if fork_client is not None:  # their workers' parent: not before them
        fork_client.close_server()


atexit.register(_close_all)


def _import_watch() -> None:
    """What a search needs, and a start does not; it takes long, for python-chess's scores bring asyncio with them."""
    from psearch.processes import watch  # noqa: F401  # only so that `search` finds it imported


class Supervisor:
    """Worker processes with their shared memory; a context manager.

    threads: 1 .. 1024; hash_mb: MiB of transposition table; start_method: `fork`, `forkserver` or None to choose;
    trace: each search is recorded, and `recorder` writes the last one to a file, also after WorkerDied. Raises
    PsearchError when the memory is not there. Search histories and the table last from search to search. One search or
    perft at a time; `close` and the request's control may be used from any thread.
    """

    def __init__(
        self, threads: int = 1, hash_mb: int = 64, start_method: str | None = None, trace: bool = False
    ) -> None:
        self._is_open = False
        self._owner = os.getpid()
        self._lock = threading.Lock()
        self._busy_thread: int | None = None
        self._is_counting = False
        load_kernels()
        self.recorder: Recorder | None = None
        if trace:
            from psearch.trace.recorder import Recorder, trace_capacity

            self.arena = Arena(threads, hash_mb, trace_events=trace_capacity(threads), populate=False)
            self.recorder = Recorder(self.arena)
        else:
            self.arena = Arena(threads, hash_mb, populate=False)
        try:
            self.pool = WorkerPool(self.arena, start_method, meanwhile=_import_watch)
        except BaseException:
            self.arena.close()
            raise
        self._is_open = True
        _LIVE.add(self)

    def __enter__(self) -> Supervisor:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_is_open", False) and self._owner == os.getpid():
            warnings.warn("an engine was not closed", ResourceWarning, stacklevel=2, source=self)
            self.close()

    @property
    def is_usable(self) -> bool:
        """Whether it can search: not closed, and no worker is lost."""
        return self._is_open and not self.pool.is_broken

    def close(self) -> None:
        """End the workers and give the memory back. May be called twice, and while another thread searches."""
        if not self._is_open or self._owner != os.getpid():
            return
        self._is_open = False
        is_locked = self._interrupt()
        self.pool.close()
        self.arena.close()
        if is_locked:
            self._lock.release()

    def _interrupt(self) -> bool:
        """End what another thread does here; whether this one holds the lock now."""
        if self._busy_thread == threading.get_ident():
            return False
        if self._lock.acquire(blocking=False):
            return True
        request_stop(self.arena.context)
        if not self._is_counting and self._lock.acquire(timeout=_CLOSE_TIMEOUT_S):
            return True
        self.pool.kill()  # the other thread sees it, and releases the lock
        return self._lock.acquire(timeout=_CLOSE_TIMEOUT_S)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One search or perft at a time; raises PsearchError when there is one, or when this is closed."""
        if not self._lock.acquire(blocking=False):
            raise PsearchError("this engine is searching already")
        try:
            if not self._is_open:
                raise PsearchError("this engine is closed")
            if self.pool.is_broken:
                raise PsearchError("a worker of this engine has died: close it and make another")
            self._busy_thread = threading.get_ident()
            yield
        finally:
            self._busy_thread = None
            self._lock.release()

    # -- what it does ------------------------------------------------------------------------------------------------

    def search(self, request: SearchRequest) -> Result:
        """Search until a limit is reached or the request's control stops it.

        The first iteration is finished in any case, if that takes no more than 50 ms. Raises WorkerDied when a worker
        process ends; the supervisor can only be closed then.
        """
        finished = finished_result(request.board)
        if finished is not None:
            return finished
        with self._alone():
            from psearch.processes.watch import Watch

            watch = Watch(self.pool, request)
            with self._recorded():
                watch.run()
            return watch.result()

    @contextmanager
    def _recorded(self) -> Iterator[None]:
        """With a trace of what happens meanwhile, if one is wanted."""
        if self.recorder is not None:
            self.recorder.begin()
        try:
            yield
        finally:
            if self.recorder is not None:
                self.recorder.end()

    def perft(self, board: chess.Board, depth: int) -> tuple[dict[chess.Move, int], float]:
        """Leaves at `depth` plies below each legal move, the moves shared out to the workers, and the seconds."""
        if depth == 0:
            return {}, 0.0
        kernels.load(PERFT)  # compiled here if need be, not by each worker
        start = time.perf_counter()
        with self._alone():
            self._is_counting = True
            from psearch.processes.perft import divide

            try:
                counts = divide(self.pool, board, depth)
            except BaseException:
                self.close()  # workers may be at it for hours, and their answers would be read by the next call
                raise
            finally:
                self._is_counting = False
        return counts, time.perf_counter() - start

    def forget(self) -> None:
        """As new: an empty transposition table, nothing learnt. Raises PsearchError while it searches."""
        with self._alone():
            self.arena.forget()
