"""The worker processes of one arena: started, spoken to, waited for, and killed when one of them is lost."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable

from psearch.arena.arena import Arena
from psearch.processes.launcher import launch
from psearch.processes.worker import QUIT, READY
from psearch.processes.worker_process import WorkerProcess
from psearch.results import PsearchError, WorkerDied

_START_TIMEOUT_S = 120.0
_ANSWER_TIMEOUT_S = 1.0
_QUIT_TIMEOUT_S = 1.0
_WAKE = -1
"""Among the events of the poll: `wake` was called."""


class WorkerPool:
    """One process for each worker of the arena, ready when the constructor returns.

    start_method: see `launch`; meanwhile: is called while the workers get ready. Raises PsearchError when the system
    refuses, WorkerDied when a worker ends at once. For one thread at a time; `wake` and `kill` are for any.
    """

    def __init__(
        self, arena: Arena, start_method: str | None = None, meanwhile: Callable[[], None] = lambda: None
    ) -> None:
        self.arena = arena
        self.workers: list[WorkerProcess] = []
        self.is_broken = False
        """a worker has died or does not answer: only `close` is left"""
        self._wake_fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._poll = select.epoll()
        self._poll.register(self._wake_fd, select.EPOLLIN)
        self._indexes: dict[int, int] = {self._wake_fd: _WAKE}
        """worker by descriptor"""
        try:
            self._start(start_method, meanwhile)
        except OSError as error:
            self.close()
            raise PsearchError(f"cannot start {arena.workers} worker processes: {error.strerror}") from error
        except BaseException:
            self.close()
            raise

    def _start(self, start_method: str | None, meanwhile: Callable[[], None]) -> None:
        launch(self.arena, self.workers, start_method)
        for index, worker in enumerate(self.workers):
            for descriptor in (worker.pipe.fileno(), worker.sentinel):
                if descriptor is not None:
                    self._poll.register(descriptor, select.EPOLLIN)
                    self._indexes[descriptor] = index
        meanwhile()
        deadline = time.monotonic() + _START_TIMEOUT_S
        for index in range(len(self.workers)):
            self.receive(index, READY, deadline - time.monotonic())

    def close(self) -> None:
        """End all workers, and give their descriptors back. No thread may be waiting for them."""
        for worker in self.workers:
            try:
                worker.pipe.send_bytes(QUIT)
            except OSError:
                continue
        deadline = time.monotonic() + _QUIT_TIMEOUT_S
        for worker in self.workers:
            worker.join(deadline - time.monotonic())
        self.kill()
        self._poll.close()
        for worker in self.workers:
            worker.close()
        os.close(self._wake_fd)

    def kill(self) -> None:
        """SIGKILL to all; whoever waits for them sees that they have ended."""
        for worker in self.workers:
            worker.kill()
        for worker in self.workers:
            worker.join(_ANSWER_TIMEOUT_S)

    # -- losing a worker ---------------------------------------------------------------------------------------------

    def _give_up_dead(self, index: int) -> WorkerDied:
        """Kill all workers because this one has ended, and return what to raise: nothing shared can be trusted now."""
        worker = self.workers[index]
        worker.join(_ANSWER_TIMEOUT_S)
        code = worker.exitcode
        how = f"was killed by signal {-code}" if code is not None and code < 0 else f"exited with code {code}"
        self.is_broken = True
        self.kill()
        return WorkerDied(f"worker {index} {how}; the search was stopped")

    def give_up_silent(self, index: int) -> WorkerDied:
        """Kill all workers because this one does not answer, and return what to raise: it may be anywhere."""
        self.is_broken = True
        self.kill()
        return WorkerDied(f"worker {index} did not answer in time; the search was stopped")

    # -- messages ----------------------------------------------------------------------------------------------------

    def send(self, index: int, message: bytes) -> None:
        """A command to a worker. Raises WorkerDied."""
        try:
            self.workers[index].pipe.send_bytes(message)
        except OSError:
            raise self._give_up_dead(index) from None

    def receive(self, index: int, expected: bytes | None, timeout_s: float = _ANSWER_TIMEOUT_S) -> bytes:
        """A worker's answer, `expected` if that is not None. Raises WorkerDied."""
        pipe = self.workers[index].pipe
        try:
            if not pipe.poll(max(0.0, timeout_s)):
                raise self.give_up_silent(index)
            message = pipe.recv_bytes()
        except (EOFError, OSError):
            raise self._give_up_dead(index) from None
        if expected is not None and message != expected:
            raise PsearchError(f"worker {index} sent {message!r} instead of {expected!r}")
        return message

    def wait(self, timeout_s: float | None = None) -> list[int]:
        """Workers whose answer is there; at the latest after `timeout_s` seconds, or when `wake` is called.

        Raises WorkerDied when one has ended.
        """
        answered = []
        for descriptor, _ in self._poll.poll(timeout_s, len(self._indexes)):
            index = self._indexes[descriptor]
            if index == _WAKE:
                self.clear_wakes()
            elif descriptor == self.workers[index].sentinel:
                raise self._give_up_dead(index)
            else:
                answered.append(index)
        return answered

    def wake(self) -> None:
        """End the present or the next `wait`. From any thread, and from signal handlers."""
        os.eventfd_write(self._wake_fd, 1)

    def clear_wakes(self) -> None:
        """Undo calls of `wake`."""
        try:
            os.eventfd_read(self._wake_fd)
        except BlockingIOError:
            return
