"""A worker process seen from the program: killed, waited for, and how it ended."""

from __future__ import annotations

import os
import select
import signal
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection

from psearch.arena import system_calls
from psearch.arena.control_groups import oom_kills
from psearch.processes.lifetime import GONE, open_pidfd, process_state
from psearch.results import PsearchError

_REAP_INTERVAL_S = 0.002
DEATH_TIMEOUT_S = 0.2
"""Until a process that was killed has ended: longer only in the depths of the kernel."""


def check_time(may_go_on: Callable[[], bool] | None) -> None:
    """Raises PsearchError when whoever starts workers cannot wait for more of them."""
    if may_go_on is not None and not may_go_on():
        raise PsearchError("there was no time to start workers")


class WorkerProcess(ABC):
    """A worker process as the program sees it: a pipe, a sentinel, and the way it ended."""

    def __init__(self, index: int, pid: int, pipe: Connection) -> None:
        self.index = index
        self.pid = pid
        self.pipe = pipe
        self.sentinel = open_pidfd(pid)
        """readable when the process has ended; None where the system has no such thing (then its pipe ends)"""
        self._oom_kills = oom_kills()
        """of the system, before it began"""
        self._exitcode: int | None = None
        self._reaping = threading.Lock()

    @property
    def exitcode(self) -> int | None:
        """None while it runs; else the exit status, or minus the number of the signal that killed it, or `GONE`."""
        with self._reaping:  # it can be read once; a second thread would find, and keep, that there is none
            if self._exitcode is None and self._may_have_ended(0.0):
                self._exitcode = self._reap()
            return self._exitcode

    @property
    def ending(self) -> str:
        """How it ended, in words: `exited with code 1`."""
        code = self.exitcode
        if self.lacked_memory:
            return "was killed by the system, which is short of memory"
        return f"was killed by signal {-code}" if code is not None and code < 0 else f"exited with code {code}"

    @property
    def lacked_memory(self) -> bool:
        """Whether the system has killed it for want of memory, as far as that can be known."""
        return self.exitcode == -signal.SIGKILL and oom_kills() > self._oom_kills

    def _may_have_ended(self, timeout_s: float) -> bool:
        """Waits for the end, if it can be waited for."""
        if self.sentinel is None:
            return process_state(self.pid) in ("Z", None)
        poll = select.poll()
        poll.register(self.sentinel, select.POLLIN)
        return bool(poll.poll(max(0.0, timeout_s) * 1000))

    def is_alive(self) -> bool:
        return self.exitcode is None

    @property
    def is_halted(self) -> bool:
        """Whether it is stopped now, by a signal or by a debugger."""
        return process_state(self.pid) in ("T", "t")

    def descriptors(self) -> list[int]:
        """Return what a poll looks at: its pipe, and its sentinel if it has one."""
        return [self.pipe.fileno(), *([] if self.sentinel is None else [self.sentinel])]

    def join(self, timeout_s: float) -> None:
        """Wait until it has ended, but no longer than `timeout_s` seconds."""
        deadline = time.monotonic() + timeout_s
        self._may_have_ended(timeout_s)
        while self.exitcode is None and time.monotonic() < deadline:
            time.sleep(_REAP_INTERVAL_S)

    def kill(self) -> None:
        """Send SIGKILL. Never hits another process that has got its number."""
        if self._exitcode is not None:
            return
        try:
            if self.sentinel is not None:
                system_calls.pidfd_send_signal(self.sentinel, signal.SIGKILL)
            elif self._has_number():
                os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            return

    def close(self) -> None:
        """Give the descriptors back."""
        self.pipe.close()
        if self.sentinel is not None:
            os.close(self.sentinel)
            self.sentinel = None

    @abstractmethod
    def _reap(self) -> int | None:
        """The exit code if it has ended. Returns at once, or nearly so."""

    @abstractmethod
    def _has_number(self) -> bool:
        """Whether its number is still its own; asked while no exit code is known, where the system has no pidfds."""


class ForkedWorker(WorkerProcess):
    """A child of this process."""

    def _reap(self) -> int | None:
        try:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
        except ChildProcessError:
            return GONE
        return None if pid == 0 else os.waitstatus_to_exitcode(status)

    def _has_number(self) -> bool:
        return self.is_alive()  # the program may have another thread that waits for any child


def end(killed: Sequence[WorkerProcess], patience_s: float = DEATH_TIMEOUT_S) -> None:
    """Wait for the ends of processes that were killed, until one is late, and give their descriptors back."""
    for worker in killed:
        worker.join(patience_s)
        if worker.is_alive():  # the kernel does not let it go, nor others perhaps
            patience_s = 0.0
        worker.close()


def reap(ended: Sequence[WorkerProcess]) -> list[WorkerProcess]:
    """Give back what is left of processes that were killed. Those that have not ended yet are returned."""
    left = []
    for worker in ended:
        if worker.is_alive():
            left.append(worker)
        else:
            worker.close()
    return left
