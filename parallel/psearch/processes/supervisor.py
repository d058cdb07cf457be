"""The supervisor of worker processes: it takes their memory, starts them, and runs one search at a time."""

from __future__ import annotations

import atexit
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

import chess

from psearch.arena.arena import Arena
from psearch.arena.system_calls import Owner
from psearch.closing import Closing
from psearch.processes import patience
from psearch.processes.control import SearchControl
from psearch.processes.pool import INLINE, WorkerPool
from psearch.processes.request import SearchRequest
from psearch.processes.time_manager import Budget, TimeManager
from psearch.results import Limits, PsearchError, Result
from psearch.scheduler.scheduler_entries import SEARCH, load_kernels
from psearch.text.report import finished_result
from psearch_core.toolchain.kernel_sets import STANDARD, KernelSet

if TYPE_CHECKING:
    from psearch.processes.watch import Watch
    from psearch.trace.recorder import Recorder

_QUICK_DEPTH = 6
_QUICK_S = 0.01

_LIVE: weakref.WeakSet[Supervisor] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """Close, at exit, supervisors that were never closed."""
    for supervisor in list(_LIVE):
        supervisor.close()
    fork_server = sys.modules.get("psearch.processes.fork_server")
    if fork_server is not None:  # after the workers, whose parent it is
        fork_server.close_server()


def _import_watch() -> None:
    """Import what a search needs and a start does not: python-chess's scores import asyncio."""
    from psearch.processes import watch  # noqa: F401  # only so that `search` finds it imported


class Supervisor(Closing):
    """Worker processes with their shared memory; a context manager.

    threads: 1 .. 1024; hash_mb: MiB of transposition table; start_method: `fork`, `forkserver`, `inline` (no processes:
    the calling thread searches, with one worker), or None to choose one of the first two; trace: record each search, so
    that `recorder` can write the last one to a file; watched: record the latest events of each worker, for
    `psearch.lab.watching`; kernels: used by all searches, compiled here if necessary. Raises PsearchError when the
    system refuses memory or processes. Search histories and the table last from search to search; when workers are lost
    and replaced, the table stays. One search at a time; any thread may use `close` and the request's control.
    """

    def __init__(
        self,
        threads: int = 1,
        hash_mb: int = 64,
        start_method: str | None = None,
        trace: bool = False,
        watched: bool = False,
        kernels: KernelSet = STANDARD,
    ) -> None:
        self.is_usable = False
        """Whether this supervisor can search: it is complete and not closed."""
        self._owner = Owner("engine")
        self._lock = threading.Lock()
        self._busy_thread: int | None = None
        self._pending_notes: list[str] = []
        """Notes for the result of the next search."""
        self._is_fresh = True
        """Whether nothing has been searched since the table was cleared."""
        load_kernels(kernels.group(SEARCH))
        self.recorder: Recorder | None = None
        self._is_ring = watched and not trace
        trace_events = 0
        if trace or watched:
            from psearch.trace.recorder import ring_capacity, trace_capacity

            trace_events = trace_capacity(threads) if trace else ring_capacity(threads)
        threads = 1 if start_method == INLINE else threads
        self.pool = WorkerPool(threads, hash_mb, start_method, trace_events, _import_watch, self._follow, kernels)
        self._follow(self.arena)
        self.is_usable = True
        _LIVE.add(self)

    def _follow(self, arena: Arena) -> None:
        """Record the trace in this arena from now on, if it has room for one."""
        if arena.trace_logs is not None:
            from psearch.trace.recorder import Recorder

            recorder = Recorder(arena, ring=self._is_ring)
            recorder.begin()
            self.recorder = recorder

    def __del__(self) -> None:
        if getattr(self, "is_usable", False) and self._owner.is_here:
            warnings.warn("an engine was not closed", ResourceWarning, stacklevel=2, source=self)
            self.close()

    @property
    def arena(self) -> Arena:
        """Arena of the present workers; another one after a loss."""
        return self.pool.arena

    def close(self) -> None:
        """End the workers and release the memory. May be called twice, and while another thread searches: that thread
        then releases the memory when its search has ended."""
        if not self.is_usable or not self._owner.is_here:
            return
        self.is_usable = False
        if self._interrupt():
            try:
                self.pool.close()
            finally:
                self._lock.release()

    def _interrupt(self) -> bool:
        """Stop the running search, and return whether this thread now holds the lock. If not, this thread is inside the
        search, or another one does not leave it; the thread that leaves the search closes the pool."""
        if self._lock.acquire(blocking=False):
            return True
        self.pool.stop()
        if self._busy_thread == threading.get_ident():
            return False
        if self._lock.acquire(timeout=patience.CLOSE_S):
            return True
        self.pool.kill()  # the other thread notices and releases the lock, unless it is stuck in a callback
        return self._lock.acquire(timeout=patience.CLOSE_S)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Allow one search at a time. Raises PsearchError while one runs, after `close`, and in a fork."""
        self._owner.check()
        if not self._lock.acquire(blocking=False):
            raise PsearchError("this engine is searching already")
        try:
            if not self.is_usable:
                raise PsearchError("this engine is closed")
            self._busy_thread = threading.get_ident()
            try:
                yield
            finally:
                self._busy_thread = None
                if not self.is_usable:  # closed meanwhile by a thread that did not wait
                    self.pool.close()
        finally:
            self._lock.release()

    def search(self, request: SearchRequest) -> Result:
        """Search until a limit is reached or the request's control stops the search.

        From then on the answer takes at most the request's patience, whatever the workers do. Only the first iteration
        may take up to 10 ms more; after that, a small search in this process answers. When a worker dies or stalls, all
        are replaced and the search continues. Raises WorkerDied when nothing was found and no process can continue.
        """
        if isinstance(request.board, chess.Board) and (finished := finished_result(request.board)) is not None:
            return finished
        since = request.control.asked_at or time.perf_counter()
        with self._alone():
            from psearch.processes.watch import Watch

            self._is_fresh = False
            watch = Watch(self.pool, request, since, self._prepare(request, since))
            is_instant = watch.clock.is_instant and self.arena.kernels == STANDARD
            if self.recorder is not None:
                self.recorder.begin()
            try:
                with self.pool.in_this_thread() if is_instant else nullcontext():
                    watch.run()
            finally:
                if self.recorder is not None:
                    self.recorder.end()
            if watch.knows_nothing and self.pool.have_substitute:
                return self._search_quickly(request, watch)
            return watch.result()

    def _prepare(self, request: SearchRequest, since: float) -> list[str]:
        """Replace lost and late workers, and return notes about them. since: when the clock began to run."""
        clock = request.clock()
        limit_s = clock.deadline_s()
        least_s = min(patience.LEAST_SETTLE_S, patience.LEAST_SETTLE_SHARE * max(0.0, clock.budget.left_s))
        patience_s = min(patience.SETTLE_S, max(least_s, patience.SETTLE_SHARE * limit_s))
        control = request.control

        def may_start() -> bool:
            if control.is_stopped:
                return False
            # without a substitute, a late answer is better than none
            return not self.pool.have_substitute or time.perf_counter() - since + patience.REPAIR_S < limit_s

        notes = self._pending_notes + self._restored(self.pool.settle(patience_s), may_start)
        self._pending_notes = []
        if request.on_note is not None:
            for note in notes:
                request.on_note(note)
        return notes

    def _restored(
        self, lost: str | None, may_start: Callable[[], bool] | None = None, may_wait: Callable[[], bool] | None = None
    ) -> list[str]:
        """Replace lost workers and return notes. lost: result of `settle`; the others: see `WorkerPool.restore`."""
        problem = self.pool.restore(may_start, may_wait)
        notes = [] if lost is None else [f"{lost}; it has been replaced" if problem is None else lost]
        return notes if problem is None else [*notes, f"this process searches alone: {problem}"]

    def _search_quickly(self, request: SearchRequest, watch: Watch) -> Result:
        """Find a move when the workers have found none in time: by a search of some milliseconds in this process or,
        with too little time for that, in the table. Time and nodes include those of the workers."""
        from psearch.processes.watch import Watch

        if watch.clock.budget.is_tight and watch.reports.table_move() is not None:
            return watch.result()
        elapsed_s = watch.reports.elapsed_s
        quick = replace(
            request,
            limits=Limits(depth=min(_QUICK_DEPTH, request.limits.depth or _QUICK_DEPTH)),
            control=SearchControl(TimeManager(Budget(hard_s=elapsed_s + _QUICK_S))),
        )
        pool = WorkerPool(1, 1, INLINE)
        try:
            small = Watch(pool, quick, watch.since, watch.notes, watch.reports.worker_stats())
            if request.options.own is not None:
                small.note(
                    "the workers found nothing in time: the answer comes from a small search with the package's kernels"
                )
            small.run()
            return replace(small.result(), interrupted=request.control.is_stopped)
        finally:
            pool.close()

    def settle(self) -> None:
        """Wait between searches until all workers have left the last one; kill them if one is late.

        The next search would do this too, but here it delays no answer.
        """
        with self._alone():
            self.pool.settle(patience.SETTLE_S)

    def restore(self, may_wait: Callable[[], bool] = lambda: True) -> list[str]:
        """Replace, between searches, workers that are late or have died; return a line about each problem.

        The next search would do so too, but later. may_wait: called meanwhile; False: late workers are left to it.
        """
        with self._alone():
            lost = self.pool.settle(patience.SETTLE_S, may_wait)
            return self._restored(lost, may_wait=may_wait) if self.pool.is_broken or not self.pool.busy else []

    def allow(self, threads: int) -> None:
        """Raise the number of workers, between searches, to `threads` if there are fewer."""
        with self._alone():
            if threads > self.pool.threads:
                self.pool.increase(threads)

    def forget(self) -> None:
        """Clear the table and all that was learnt since the last time. Raises PsearchError during a search."""
        with self._alone():
            if not self._is_fresh:
                self._pending_notes += self._restored(self.pool.settle(patience.SETTLE_S))
                self.arena.forget()
                self._is_fresh = True
