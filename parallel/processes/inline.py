"""A pool without processes: the one worker of an arena, run by the thread that watches the search.

The last resort where the system gives no process, or no memory for one. Slower by the looks in between, and on one
core; the same search otherwise.
"""

from __future__ import annotations

import time

from psearch.arena.arena import Arena
from psearch.processes.worker_process import WorkerProcess
from psearch.results import WorkerDied
from psearch.scheduler.scheduler_entries import reports_written

_SLICE_S = 0.01
_BURSTS = 4
"""About a millisecond: how long a limit or a stop may go unnoticed."""


class InlinePool:
    """What a search needs of a `WorkerPool`, for an arena of one worker."""

    is_broken = False

    def __init__(self, arena: Arena) -> None:
        self.arena = arena
        self.workers: list[WorkerProcess] = []
        self.busy: set[int] = set()

    def wait_until_ready(self) -> None:
        """Do nothing: there is nobody to wait for."""

    def begin(self) -> None:
        """Have the worker search what is set up in the arena, at the following calls of `collect`."""
        self.busy = {0}

    def collect(self, timeout_s: float) -> None:
        """Search for a little while, at most `timeout_s` seconds and a millisecond, and no further than a report."""
        context, work = self.arena.context, self.arena.driver.function("work")
        end = time.monotonic() + min(timeout_s, _SLICE_S)
        written = reports_written(context)
        while self.busy:
            if work(context, 0, _BURSTS):
                self.busy.clear()
            if time.monotonic() >= end or reports_written(context) != written:
                return

    def check(self) -> None:
        """Do nothing: nothing can be lost here."""

    def give_up_silent(self, index: int) -> WorkerDied:
        """Run the worker no more; returns what to raise then."""
        self.kill()
        return WorkerDied("the search in this process did not end")

    def kill(self) -> None:
        """Do nothing: a worker that is not run is quiet."""
        self.busy.clear()

    def abandon(self) -> list[WorkerProcess]:
        """Do nothing: no worker is left to the caller."""
        self.kill()
        return []

    def close(self) -> None:
        """Do nothing: there is nothing to give back."""
        self.kill()
