"""The worker processes of one arena: started, spoken to, waited for, and killed when one of them is lost."""

from __future__ import annotations

import select
import signal
import time
from collections.abc import Callable

from psearch.arena.arena import Arena
from psearch.arena.system_calls import refusal
from psearch.processes.starting.launcher import launch
from psearch.processes.wake import Wake
from psearch.processes.worker_main import DONE, GO, QUIT, READY
from psearch.processes.worker_process import DEATH_TIMEOUT_S, WorkerProcess, end
from psearch.results import PsearchError, WorkerDied

_START_TIMEOUT_S = 120.0
_LOOK_S = 0.15
_ANSWER_TIMEOUT_S = 1.0
_QUIT_TIMEOUT_S = 1.0
_WAKE = -1
"""Among the events of the poll: the wait was ended from outside."""


class LostWorker(WorkerDied):
    """A worker has ended. Its words may take a moment: a fork server has to be asked how."""

    def __init__(self, index: int, worker: WorkerProcess) -> None:
        super().__init__(f"worker {index} has ended")
        self.index = index
        self._worker = worker

    @property
    def lacked_memory(self) -> bool:
        """Whether the system has killed it for want of memory."""
        self._worker.join(DEATH_TIMEOUT_S)
        return self._worker.lacked_memory

    @property
    def crashed(self) -> bool:
        """Whether it has ended by itself, and not by somebody's SIGKILL."""
        self._worker.join(DEATH_TIMEOUT_S)
        return self._worker.exitcode != -signal.SIGKILL

    def __str__(self) -> str:
        self._worker.join(DEATH_TIMEOUT_S)
        return f"worker {self.index} {self._worker.ending}"


class WorkerPool:
    """One process for each worker of an arena. Workers take commands at once, though they may not be ready yet.

    start_method, may_go_on: see `launch`; wake: ends waits. Raises PsearchError when the system refuses. For one thread
    at a time; `kill` is for any.
    """

    def __init__(
        self,
        arena: Arena,
        wake: Wake,
        start_method: str | None = None,
        may_go_on: Callable[[], bool] | None = None,
    ) -> None:
        self.arena = arena
        self.workers: list[WorkerProcess] = []
        self.busy: set[int] = set()
        """workers that have not left the search yet"""
        self.is_broken = False
        """all workers have been killed, since one was lost: only `close` is left"""
        self._wake = wake
        try:
            self._poll = select.epoll()
        except OSError as error:
            raise PsearchError(f"cannot wait for workers: {refusal(error)}") from error
        self._indexes: dict[int, int] = {wake.fileno(): _WAKE}
        """worker by descriptor"""
        try:
            self._poll.register(wake.fileno(), select.EPOLLIN)
            launch(arena, self.workers, start_method, may_go_on)
            for index, worker in enumerate(self.workers):
                for descriptor in worker.descriptors():
                    self._poll.register(descriptor, select.EPOLLIN)
                    self._indexes[descriptor] = index
        except OSError as error:
            self.is_broken = True
            self.close()
            raise PsearchError(f"cannot start {arena.workers} worker processes: {refusal(error)}") from error
        except BaseException:
            self.is_broken = True
            self.close()
            raise

    def wait_until_ready(self) -> None:
        """Wait for every worker, right after the start. Raises WorkerDied, also when one is halted at two looks."""
        deadline = time.monotonic() + _START_TIMEOUT_S
        starting, halted = set(range(len(self.workers))), set[int]()
        next_look = time.monotonic() + _LOOK_S
        while starting:
            for index in self.wait(max(0.0, next_look - time.monotonic())):
                if self._read(index) != READY:
                    raise AssertionError("a worker answers before it is ready")
                starting.discard(index)
            now = time.monotonic()
            if now < next_look:
                continue
            next_look = now + _LOOK_S
            still_halted = {index for index in starting if self.workers[index].is_halted}
            if now > deadline or still_halted & halted:
                raise self.give_up_silent(min(still_halted & halted or starting))
            halted = still_halted

    # -- a search ----------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Let all workers search what is set up in the arena. Raises WorkerDied."""
        self.busy = set(range(len(self.workers)))
        for index in range(len(self.workers)):
            self.send(index, GO)

    def collect(self, timeout_s: float) -> None:
        """Take back the workers that have left the search, and return when there was any event, such as a report, at
        the latest after `timeout_s` seconds. Raises WorkerDied when one has ended."""
        for index in self.wait(timeout_s):
            if self._read(index) == DONE:
                self.busy.discard(index)

    # -- messages ----------------------------------------------------------------------------------------------------

    def send(self, index: int, message: bytes) -> None:
        """Send a command to a worker. Raises WorkerDied."""
        try:
            self.workers[index].pipe.send_bytes(message)
        except OSError:
            raise self._give_up_dead(index) from None

    def receive(self, index: int, timeout_s: float = _ANSWER_TIMEOUT_S) -> bytes:
        """Return a worker's answer. Raises WorkerDied."""
        try:
            if not self.workers[index].pipe.poll(max(0.0, timeout_s)):
                raise self.give_up_silent(index)
        except OSError:
            raise self._give_up_dead(index) from None
        return self._read(index)

    def _read(self, index: int) -> bytes:
        """A worker's answer that is there: short messages come whole. Raises WorkerDied."""
        try:
            return self.workers[index].pipe.recv_bytes()
        except (EOFError, OSError):
            raise self._give_up_dead(index) from None

    def wait(self, timeout_s: float | None = None) -> list[int]:
        """Return workers whose answer is there; at the latest after `timeout_s` seconds, or when it is ended from
        outside.

        Raises WorkerDied when one has ended.
        """
        answered = []
        for descriptor, _ in self._poll.poll(timeout_s, len(self._indexes)):
            index = self._indexes[descriptor]
            if index == _WAKE:
                self._wake.clear()
            elif descriptor == self.workers[index].sentinel:
                raise self._give_up_dead(index)
            else:
                answered.append(index)
        return answered

    # -- losing a worker ---------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Check between searches: raises WorkerDied if a worker has ended."""
        if not self.is_broken:
            self.collect(0.0)

    def give_up_silent(self, index: int) -> WorkerDied:
        """Kill all workers because this one does not answer, and return what to raise: it may be anywhere."""
        self.kill()
        return WorkerDied(f"worker {index} did not answer")

    def _give_up_dead(self, index: int) -> WorkerDied:
        """Kill all workers because this one has ended, and return what to raise: nothing shared can be trusted now."""
        self.kill()
        return LostWorker(index, self.workers[index])

    def fileno(self) -> int:
        """Return a descriptor for a poll between searches, readable when a worker has ended."""
        return self._poll.fileno()

    def kill(self) -> None:
        """Send SIGKILL to all, without waiting for their ends; whoever waits for them sees those."""
        self.is_broken = True
        for worker in self.workers:
            worker.kill()

    def abandon(self) -> list[WorkerProcess]:
        """Kill all workers and close this without waiting for their ends: they are left to the caller."""
        self.kill()
        self._poll.close()
        killed, self.workers = self.workers, []
        return killed

    def close(self) -> None:
        """End all workers, and give their descriptors back. No thread may be waiting for them."""
        if not self.busy and not self.is_broken:
            self._ask_to_quit()
        end(self.abandon())

    def _ask_to_quit(self) -> None:
        for worker in self.workers:
            try:
                worker.pipe.send_bytes(QUIT)
            except OSError:
                continue
        deadline = time.monotonic() + _QUIT_TIMEOUT_S
        for worker in self.workers:
            worker.join(deadline - time.monotonic())
