"""The pool of worker processes and their shared memory, from start to end.

When a worker is lost, or more are wanted, all are replaced. After a death nothing in the control block can be trusted:
the worker may have held a lock or left a record half written. So the others are killed too, and new workers get a new
control block. The transposition table stays, because its entries verify themselves (`Arena.renew`). The pool does not
wait for the old workers to end. Where the system grants no process, the thread that watches a search runs worker 0.
"""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from psearch.arena.arena import Arena, MemoryShortage
from psearch.arena.system_calls import refusal
from psearch.processes import patience
from psearch.processes.child import ChildProcess, Children, end, reap
from psearch.processes.control import Wake
from psearch.processes.patience import DEATH_S, LOST_STARTS, QUIT_S, Patience
from psearch.processes.starting import check_time, launch
from psearch.processes.worker_main import DONE, GO, READY
from psearch.results import PsearchError, WorkerDied
from psearch.scheduler.scheduler_entries import reports_written, request_stop
from psearch_core.toolchain.kernel_sets import STANDARD, KernelSet

INLINE = "inline"
"""Name of the start method without processes."""
_SETTLE_INTERVAL_S = 0.002
_SHORTAGE_INTERVAL_S = 0.01
_SLICE_S = 0.01
_SLICE_BURSTS = 4
"""Bursts between two checks of limits when the calling thread searches: about a millisecond."""


class LostWorker(WorkerDied):
    """A worker has ended. The message may take a moment, since a fork server has to be asked for the exit code.

    refusal: what the system refused to the worker, if it has reported that.
    """

    def __init__(self, worker: ChildProcess, refusal: str = "") -> None:
        super().__init__(f"worker {worker.index} has ended")
        self.worker = worker
        self.refusal = refusal

    def __str__(self) -> str:
        self.worker.join(DEATH_S)
        return self.refusal or f"worker {self.worker.index} {self.worker.ending}"


class WorkerPool:
    """Worker processes and the arena that they share.

    threads: 1 .. 1024; hash_mb: MiB of transposition table; start_method: `fork`, `forkserver`, `inline`, or None to
    choose; trace_events: see `Arena`; meanwhile: called while the first workers get ready; on_renewal: called with each
    arena that replaces another; kernels: used by all searches. Raises PsearchError when the system refuses, WorkerDied
    when a worker ends at once. One thread at a time may use the pool; any thread may call `stop`, `kill` and `wake`.
    """

    def __init__(
        self,
        threads: int,
        hash_mb: int,
        start_method: str | None = None,
        trace_events: int = 0,
        meanwhile: Callable[[], None] = lambda: None,
        on_renewal: Callable[[Arena], None] = lambda arena: None,
        kernels: KernelSet = STANDARD,
    ) -> None:
        self.threads = threads
        self.workers: list[ChildProcess] = []
        """Worker processes by index; empty if the calling thread searches."""
        self.busy: set[int] = set()
        """Indices of workers that have not left the search yet."""
        self.is_broken = False
        """Whether all workers have been killed because one was lost."""
        self._start_method = start_method
        self._kernels = kernels
        self._on_renewal = on_renewal
        self._children: Children | None = None
        self._sleeping: list[ChildProcess] = []
        """Workers that are idle while the calling thread searches in their place."""
        self._look_at = math.inf
        self._patience = patience.SEARCH
        self._changing = threading.RLock()
        """Lock held while arena and workers are replaced, and while another thread uses them."""
        self._is_closing = False
        self._is_closed = False
        self._ending: list[ChildProcess] = []
        """Killed workers that may not have ended yet."""
        with ExitStack() as taken:  # released when something fails
            is_inline = start_method == INLINE
            self.arena = Arena(threads, hash_mb, trace_events=trace_events, populate=is_inline, kernels=kernels)
            taken.callback(lambda: self.arena.close())
            self.wake = Wake()
            taken.callback(self.wake.close)
            taken.callback(self._end_workers)
            if is_inline:
                meanwhile()
            else:
                self._start(meanwhile)
            taken.pop_all()

    # -- start and end -----------------------------------------------------------------------------------------------

    def _start(self, meanwhile: Callable[[], None]) -> None:
        """Start the first workers, and others if these are killed or stopped before they are ready. After several
        tries let the calling thread search until `restore` gets some; raise WorkerDied where it cannot."""
        for start in range(LOST_STARTS):
            try:
                if start == 0:
                    self._launch(None)
                    meanwhile()
                else:
                    self._replace(self.threads, None)
                self._wait_until_ready()
                return
            except LostWorker as error:
                if error.refusal:
                    raise PsearchError(error.refusal) from error
                reason = str(error)
                if error.worker.lacked_memory:
                    size = f"a hash of {self.arena.hash_mb} MB and {self.threads} threads"
                    raise WorkerDied(f"not enough memory for {size}: {reason}") from error
                if error.worker.exitcode != -signal.SIGKILL:  # it has ended by itself
                    raise
                lost: WorkerDied = error
            except WorkerDied as error:
                lost = error
        if not self.have_substitute:
            raise lost
        self._replace(0, None)

    def _launch(self, may_start: Callable[[], bool] | None) -> None:
        """Start all workers, which accept commands at once. Raises PsearchError when the system refuses."""
        try:
            self._children = Children()
            self._children.watch(self.wake.fileno())
            launch(self.arena, self.workers, self._start_method, may_start)
            for worker in self.workers:
                self._children.add(worker)
        except BaseException as error:
            self._ending += self._abandon()
            if isinstance(error, OSError):
                raise PsearchError(f"cannot start {self.arena.workers} worker processes: {refusal(error)}") from error
            raise

    def _wait_until_ready(self) -> None:
        """Wait after the start until every worker is ready. Raises WorkerDied if one ends, stalls or is stopped."""
        starting = set(range(len(self.workers)))
        self._begin_looks(patience.START)
        while starting:
            for child, messages in self._news(max(0.0, self.look_pause_s())):
                if READY in messages:
                    starting.discard(child.index)
            self.look(starting)

    def _abandon(self) -> list[ChildProcess]:
        """Kill all workers and return them; the caller waits for their ends."""
        killed, self.workers = [*self.workers, *self._sleeping], []
        self._sleeping = []
        for worker in killed:
            worker.kill()
        if self._children is not None:
            self._children.close()
        self._children = None
        self.busy.clear()
        self.is_broken = self.is_broken or bool(killed)
        return killed

    def _end_workers(self) -> None:
        if not self.busy and not self.is_broken:
            for worker in self.workers:
                worker.pipe.close()  # which ends it
            deadline = time.monotonic() + QUIT_S
            for worker in self.workers:
                worker.join(deadline - time.monotonic())
        end(self._abandon())
        end(self._ending)

    def close(self) -> None:
        """End all workers and release the memory. May be called twice, but while no thread waits for workers."""
        with self._changing:  # from here on `stop` does not touch the memory
            if self._is_closed:
                return
            self._is_closed = True
        self._end_workers()
        self.arena.close()
        self.wake.close()

    # -- state -------------------------------------------------------------------------------------------------------

    @property
    def are_processes(self) -> bool:
        """Whether worker processes search, rather than the calling thread."""
        return bool(self.workers)

    @property
    def have_substitute(self) -> bool:
        """Whether the calling thread can search instead of the workers, with the package's kernels."""
        return not self._kernels.brings_game

    @property
    def are_complete(self) -> bool:
        """Whether all workers run, as far as is known, and have left the last search."""
        is_as_wanted = self.are_processes or self._start_method == INLINE
        return is_as_wanted and not self.is_broken and not self.busy

    def fileno(self) -> int | None:
        """Return a descriptor that becomes readable when an idle worker ends; None without workers, or after a loss."""
        return None if self._children is None or self.is_broken else self._children.fileno()

    # -- a search ----------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Start the search that is set up in the arena on all workers; without workers, `collect` runs it."""
        self.busy = set(range(len(self.workers))) or {0}
        self._begin_looks(patience.SEARCH)
        if self._children is not None:
            for worker in self.workers:
                self._children.send(worker, GO)

    def collect(self, timeout_s: float) -> None:
        """Wait up to `timeout_s` seconds for an event; note workers that have left. Raises WorkerDied after a loss."""
        if not self.workers:
            self._search_here(timeout_s)
            return
        for child, messages in self._news(timeout_s):
            if DONE in messages:
                self.busy.discard(child.index)

    def _news(self, timeout_s: float) -> list[tuple[ChildProcess, list[str]]]:
        """Return new messages of workers. Raises LostWorker when one has ended."""
        assert self._children is not None
        news = self._children.wait(timeout_s)
        if self._children.was_woken:
            self.wake.clear()
        for child, messages, has_ended in news:
            refused = [message for message in messages if isinstance(message, PsearchError)]
            if has_ended or refused:
                self._break()  # nothing shared can be trusted now
                raise LostWorker(child, str(refused[0]) if refused else "")
        return [(child, messages) for child, messages, _ in news]

    def _search_here(self, timeout_s: float) -> None:
        """Run worker 0 in this thread until its next report, for at most about `timeout_s` seconds and a millisecond:
        the last resort where the system grants no process."""
        context, work = self.arena.context, self.arena.driver.function("work")
        until = time.monotonic() + min(timeout_s, _SLICE_S)
        written = reports_written(context)
        while self.busy:
            if work(context, 0, _SLICE_BURSTS):
                self.busy.clear()
            if time.monotonic() >= until or reports_written(context) != written:
                return

    @contextmanager
    def in_this_thread(self) -> Iterator[None]:
        """Let the calling thread search within this context, with the package's kernels, while the workers sleep."""
        with self._changing:
            self._sleeping, self.workers = self.workers, []
        try:
            yield
        finally:
            with self._changing:
                if not self.workers:
                    self.busy.clear()
                    self.workers, self._sleeping = self._sleeping, []

    # -- losses ------------------------------------------------------------------------------------------------------

    def _begin_looks(self, how: Patience) -> None:
        self._patience, self._look_at = how, time.monotonic() + how.look_s
        for worker, beat in zip(self.workers, self.arena.worker["counters"]["search_cycles"].tolist(), strict=False):
            worker.expect(beat)

    def look_pause_s(self) -> float:
        """Return the seconds until `look` is due."""
        return self._look_at - time.monotonic() if self.workers else math.inf

    def look(self, expected: set[int]) -> None:
        """Raise WorkerDied if one of these workers has made no progress for too long. May be called at any rate."""
        now = time.monotonic()
        if not self.workers or now < self._look_at:
            return
        self._look_at = now + self._patience.look_s
        beats = self.arena.worker["counters"]["search_cycles"].tolist()  # each worker's progress
        for index in expected:
            if self.workers[index].why_lost(beats[index], self._patience) is not None:
                self._break()
                raise WorkerDied(f"worker {index} did not answer")

    def _break(self) -> None:
        """Send SIGKILL to all workers without waiting for their ends, which `collect` sees."""
        self.is_broken = bool(self.workers)
        for worker in self.workers:
            worker.kill()
        if not self.workers:
            self.busy.clear()  # worker 0 of this process does nothing between two calls

    def settle(self, patience_s: float, may_wait: Callable[[], bool] = lambda: True) -> str | None:
        """Wait between searches until all workers have left the last one. Return what went wrong, or None.

        A worker that has not left it after `patience_s` seconds, or is stopped, is killed with all others. The time
        starts again whenever one leaves, since many workers may share few cores. may_wait: called meanwhile; when it
        returns False, late workers are left alone.
        """
        try:
            if self.workers and not self.is_broken:
                self.collect(0.0)
            deadline = time.monotonic() + patience_s
            while self.busy and not self.is_broken and may_wait():
                before = len(self.busy)
                self.collect(_SETTLE_INTERVAL_S)
                if len(self.busy) < before:
                    deadline = max(deadline, time.monotonic() + patience_s)
                    continue
                halted = next((index for index in self.busy if self.workers and self.workers[index].is_halted), None)
                if self.busy and (halted is not None or time.monotonic() > deadline):
                    late = min(self.busy) if halted is None else halted
                    self._break()
                    return f"worker {late} did not answer" if self.workers else "the search in this process did not end"
        except WorkerDied as error:
            return str(error)
        return None

    def restore(
        self, may_start: Callable[[], bool] | None = None, may_wait: Callable[[], bool] | None = None
    ) -> str | None:
        """Replace all workers, in a new control block, if any is lost or late; then all accept commands.

        Where the system grants no processes, let the calling thread search until a later call gets some, and return the
        reason; else return None. may_start: called while processes start, to abandon that; None: there is no hurry.
        Raises PsearchError when memory is short; with `may_wait`, or else `may_start`, that is tried for some seconds.
        Killed workers are not waited for: the kernel may hold one for long (a lost disk, a frozen control group).
        """
        may_try = may_wait or may_start
        deadline = time.monotonic() + patience.SHORTAGE_S
        while not self.are_complete:
            try:
                can_stay = not self.are_processes and not self.is_broken
                return self._try_to_replace(0 if self._start_method == INLINE else self.threads, may_start, can_stay)
            except MemoryShortage:
                if may_try is None or not may_try() or time.monotonic() > deadline:
                    raise
                time.sleep(_SHORTAGE_INTERVAL_S)
            finally:
                self._ending = reap(self._ending)
        return None

    def increase(self, threads: int) -> str | None:
        """Replace all workers, busy or not, by more of them: `threads` processes. Returns and raises as `restore`."""
        self.threads, self._start_method = threads, None if self._start_method == INLINE else self._start_method
        try:
            return self._try_to_replace(threads, None, False)
        finally:
            self._ending = reap(self._ending)

    def _try_to_replace(self, processes: int, may_start: Callable[[], bool] | None, can_stay: bool) -> str | None:
        """Replace all workers or return why not; then the calling thread searches (in this arena if `can_stay`)."""
        former = self.arena
        try:
            if processes:
                check_time(may_start)
            self._replace(processes, may_start)
        except (OSError, PsearchError) as error:
            if not (can_stay and self.arena is former):
                self._replace(0, None)
            return str(error)
        return None

    def _replace(self, processes: int, may_start: Callable[[], bool] | None) -> None:
        """Renew the arena and start this number of processes. Without any, the calling thread uses the package's
        kernels, because a user's may crash or never return, unless the pool was made without processes."""
        with self._changing:
            if self._is_closing:
                raise PsearchError("this engine is closed")
            former = self.arena
            self._ending += self._abandon()
            is_wanted = processes or self._start_method == INLINE
            self.arena = former.renew(max(1, processes), self._kernels if is_wanted else STANDARD)
            former.close()
            self.is_broken = False
            self._on_renewal(self.arena)
            if processes:
                self._launch(may_start)

    # -- another thread, or a signal handler -------------------------------------------------------------------------

    def stop(self) -> None:
        """Ask all workers to leave the search."""
        with self._changing:
            if not self._is_closed:
                request_stop(self.arena.context)

    def kill(self) -> None:
        """Send SIGKILL to all workers, for good: the searching thread notices, and starts no others."""
        with self._changing:
            self._is_closing = True
            for worker in self._sleeping:
                worker.kill()
            self._break()
