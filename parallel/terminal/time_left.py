"""How long the rest of some work takes, as rich estimates it from the steps that are done."""

from __future__ import annotations

import math
from collections.abc import Callable
from time import monotonic

from rich.progress import Progress, Task, TimeRemainingColumn

WHOLE_WORK = math.inf
"""rich's `speed_estimate_period` in seconds: steps may take minutes, so all count, not those of the last 30 s."""


class TimeLeft:
    """An estimate without a bar. clock: seconds."""

    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        self._progress = Progress(disable=True, speed_estimate_period=WHOLE_WORK, get_time=clock or monotonic)
        self._number = self._progress.add_task("", total=None)
        self._column = TimeRemainingColumn()

    @property
    def _task(self) -> Task:
        return self._progress.tasks[0]

    def update(self, done: float, total: float) -> None:
        """Note that so much of the work is done now, in any unit; the total may change on the way. Less than before:
        new work."""
        if self._task.finished or done < self._task.completed:
            self._progress.reset(self._number)
        self._task.total = total  # not by `update`, which would forget the steps so far
        self._progress.update(self._number, completed=done)

    @property
    def text(self) -> str:
        """`0:02:05`; empty while nothing is known, and when all is done."""
        return self._column.render(self._task).plain if self._task.time_remaining else ""
