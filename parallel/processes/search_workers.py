"""The workers of a searcher from its start to its end, with their memory: when one of them is lost, or there are to be
more, all are replaced.

Nothing in the control block can be trusted after a death, for the worker may have held a lock or been halfway through
anything. So the others are killed too, and new workers get a new control block; the transposition table stays, for its
entries verify themselves (see `Arena.renew`). Nobody waits for the old ones to end.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from psearch.arena.arena import Arena, MemoryShortage
from psearch.core.toolchain.kernel_sets import STANDARD, KernelSet
from psearch.processes.heartbeat import find_halted
from psearch.processes.inline import InlinePool
from psearch.processes.pool import LostWorker, WorkerPool
from psearch.processes.wake import Wake
from psearch.processes.worker_process import WorkerProcess, end, reap
from psearch.results import PsearchError, WorkerDied
from psearch.scheduler.scheduler_entries import request_stop

INLINE = "inline"
"""The start method without processes."""
_SETTLE_INTERVAL_S = 0.002
_MOST_STARTS = 5
"""How often workers are started that are killed or halted before they are ready."""
_SHORTAGE_S = 10.0
"""How long a search waits for the memory of a control block: those that had the last one may not have ended yet."""
_SHORTAGE_INTERVAL_S = 0.01


class Workers:
    """Worker processes and the arena that they share, of the same number and size for all their life.

    threads: 1 .. 1024; hash_mb: MiB of transposition table; start_method: `fork`, `forkserver`, `inline`, or None to
    choose; trace_events: see `Arena`; meanwhile: called while the first workers get ready; on_renewal: called with each
    arena that takes the place of another; kernels: of their searches. Raises PsearchError when the system refuses,
    WorkerDied when a worker ends at once. For one thread at a time; `stop`, `kill` and `wake` are for any.
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
        self._start_method = start_method
        self._kernels = kernels
        self._on_renewal = on_renewal
        self._changing = threading.RLock()
        """held while arena and pool are replaced, and while another thread than the owner uses them"""
        self._is_closing = False
        self._is_closed = False
        self._ending: list[WorkerProcess] = []
        """killed, and perhaps not gone yet"""
        with ExitStack() as taken:  # given back when something fails
            is_inline = start_method == INLINE
            self.arena = Arena(threads, hash_mb, trace_events=trace_events, populate=is_inline, kernels=kernels)
            taken.callback(lambda: self.arena.close())
            self.wake = Wake()
            taken.callback(self.wake.close)
            self.pool: WorkerPool | InlinePool = InlinePool(self.arena)
            taken.callback(lambda: end(self._ending))
            taken.callback(lambda: self.pool.close())
            if is_inline:
                meanwhile()
            else:
                self._start(meanwhile)
            taken.pop_all()

    def _start(self, meanwhile: Callable[[], None]) -> None:
        """Start the first workers, and others for those that are killed or halted before they are ready. Where that
        goes on the caller's thread is to search, until `restore` gets some; raises WorkerDied where it cannot."""
        for start in range(_MOST_STARTS):
            try:
                if start == 0:
                    self.pool = WorkerPool(self.arena, self.wake, self._start_method)
                    meanwhile()
                else:
                    self._replace(self.threads, None)
                self.pool.wait_until_ready()
                return
            except LostWorker as error:
                if error.lacked_memory:
                    size = f"a hash of {self.arena.hash_mb} MB and {self.threads} threads"
                    raise WorkerDied(f"not enough memory for {size}: {error}") from error
                if error.crashed:
                    raise
                lost: WorkerDied = error
            except WorkerDied as error:
                lost = error
        if not self.have_substitute:
            raise lost
        self._replace(0, None)

    @property
    def are_processes(self) -> bool:
        """Whether processes search, or this one, for want of any."""
        return isinstance(self.pool, WorkerPool)

    @property
    def have_substitute(self) -> bool:
        """Whether this process can search in their place, with the package's kernels."""
        return not self._kernels.brings_game

    @property
    def are_complete(self) -> bool:
        """Whether all are there, as far as is known, and none is missing in the search before."""
        is_as_wanted = self.are_processes or self._start_method == INLINE
        return is_as_wanted and not self.pool.is_broken and not self.pool.busy

    @contextmanager
    def in_this_thread(self) -> Iterator[None]:
        """Have the caller's thread search inside, with the package's kernels, while the workers are left asleep."""
        pool = self.pool
        with self._changing:
            self.pool = InlinePool(self.arena)
        try:
            yield
        finally:
            with self._changing:
                self.pool = pool
                if self._is_closing:  # nobody has told them
                    pool.kill()

    # -- another thread, or a signal handler -------------------------------------------------------------------------

    def stop(self) -> None:
        """Have them leave the search."""
        with self._changing:
            if not self._is_closed:
                request_stop(self.arena.context)

    def kill(self) -> None:
        """Send SIGKILL to all. The thread that searches sees it; no others come after them."""
        with self._changing:
            self._is_closing = True
            self.pool.kill()

    # -- after losses ------------------------------------------------------------------------------------------------

    def settle(self, patience_s: float, may_wait: Callable[[], bool] = lambda: True) -> str | None:
        """See between searches that no worker is at the last one any more. What went wrong, None if nothing did.

        Who has not left it after `patience_s` seconds, or is halted, is killed, with all the others. Something that
        goes on, though slowly, is waited for a while longer: many workers share few cores. may_wait: asked meanwhile;
        where it is false, who is late stays.
        """
        try:
            self.pool.check()
            deadline = time.monotonic() + patience_s
            while self.pool.busy and not self.pool.is_broken and may_wait():
                before = len(self.pool.busy)
                self.pool.collect(_SETTLE_INTERVAL_S)
                if len(self.pool.busy) < before:
                    deadline = max(deadline, time.monotonic() + patience_s)
                    continue
                halted = find_halted(self.pool)
                if self.pool.busy and (halted is not None or time.monotonic() > deadline):
                    raise self.pool.give_up_silent(min(self.pool.busy) if halted is None else halted)
        except WorkerDied as error:
            return str(error)
        return None

    def restore(
        self, may_go_on: Callable[[], bool] | None = None, may_wait: Callable[[], bool] | None = None
    ) -> str | None:
        """Replace the workers if any is lost or late, in a new control block. Afterwards all of them take commands.

        Where no processes can be had, the caller's thread is to search alone (`InlinePool`), until the next call that
        gets some. What stands in the way is returned then; None when all are there. may_go_on: asked while processes
        are started; None: nobody waits. Raises PsearchError when there is no memory for either; before that, where
        `may_wait` or else `may_go_on` is given, it is tried for a while. Those that were killed are not waited for: one
        that the kernel does not let go (a disk that is gone, a frozen control group) may stay.
        """
        may_try = may_wait or may_go_on
        deadline = time.monotonic() + _SHORTAGE_S
        while True:
            try:
                return self._restore(may_go_on)
            except MemoryShortage:
                if may_try is None or not may_try() or time.monotonic() > deadline:
                    raise
                time.sleep(_SHORTAGE_INTERVAL_S)
            finally:
                self._ending = reap(self._ending)

    def _restore(self, may_go_on: Callable[[], bool] | None) -> str | None:
        if self.are_complete:
            return None
        former = self.arena
        can_stay = not self.are_processes and not self.pool.is_broken
        try:
            self._replace(0 if self._start_method == INLINE else self.threads, may_go_on)
        except (OSError, PsearchError) as error:
            if not (can_stay and self.arena is former):
                self._replace(0, None)
            return str(error)
        return None

    def _replace(self, processes: int, may_go_on: Callable[[], bool] | None) -> None:
        """A renewed arena, and a pool of so many processes; 0: the pool without any. A user's kernels, which may crash
        or never return, are left to processes, unless none were wanted from the start."""
        with self._changing:
            if self._is_closing:
                raise PsearchError("this engine is closed")
            former = self.arena
            self._ending += self.pool.abandon()
            is_wanted = processes or self._start_method == INLINE
            self.arena = former.renew(max(1, processes), self._kernels if is_wanted else STANDARD)
            former.close()
            self.pool = InlinePool(self.arena)  # until there are processes
            self._on_renewal(self.arena)
            if processes:
                self.pool = WorkerPool(self.arena, self.wake, self._start_method, may_go_on)

    def increase(self, threads: int) -> str | None:
        """Have more workers than before, as processes; all that there are end, wherever they are. Returned and raised
        is what `restore` does."""
        self.threads, self._start_method = threads, None if self._start_method == INLINE else self._start_method
        try:
            self._replace(threads, None)
        except (OSError, PsearchError) as error:
            self._replace(0, None)
            return str(error)
        finally:
            self._ending = reap(self._ending)
        return None

    def close(self) -> None:
        """End all workers, and give the memory back. May be called twice."""
        with self._changing:  # from here on `stop` does not touch the memory
            if self._is_closed:
                return
            self._is_closed = True
        self.pool.close()
        end(self._ending)
        self.arena.close()
        self.wake.close()
