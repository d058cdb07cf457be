"""Workers for tests: one that dies of a position, one that answers without a search, one that cannot begin."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

from chess.engine import Cp

from psearch.batch.positions.position_pool import PositionWorker, WorkerSettings
from psearch.batch.positions.task import Answer, Line, Outcome, Task
from psearch.processes.tasks import Program

POISON = "4k3/8/8/8/8/8/P7/4K3 w - - 0 1"
FOUND = Answer("e2e4", [Line(Cp(0), "exact", 1, 1, ["e2e4"])], 1, 0.001, 0, 0, [])


class Poisoned(PositionWorker):
    def search(self, number: int, task: Task) -> Outcome:
        if task.fen == POISON:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().search(number, task)


class Empty(PositionWorker):
    def forget(self) -> None:
        pass

    def search(self, number: int, task: Task) -> Outcome:
        return Outcome(number, task.id, FOUND)


class Moody(PositionWorker):
    """Cannot begin where this file is there, and removes it."""

    def __init__(self, mood: Path, settings: WorkerSettings, program: Program) -> None:
        with suppress(FileNotFoundError):
            mood.unlink()
            raise MemoryError("for a moment")
        super().__init__(settings, program)


class Stillborn(PositionWorker):
    def __init__(self, settings: WorkerSettings, program: Program) -> None:
        raise SystemExit(7)
