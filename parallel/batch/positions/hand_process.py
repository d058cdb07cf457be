"""A hand in a process of this machine: how its outcomes are told, and what it does between two searches."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

from psearch.batch.positions.hand import Hand, HandSettings, Searched
from psearch.batch.positions.jobs import Batch, Outcome
from psearch.processes.tasks.task_main import Program

_TELL_INTERVAL_S = 0.2
"""Outcomes that come sooner are put together and told of together: each message wakes the program, and what is done
between two searches, there or here, finds none of its code and data in the processor's caches."""
_COLLECT_INTERVAL_S = 1.0
"""Between two collections of garbage; a search leaves next to none."""


class HandProcess:
    """Answers batches, and the question for more threads.

    settings: of the hand; hand: what searches.
    """

    def __init__(
        self,
        settings: HandSettings,
        hand: Callable[[HandSettings], Hand],
        program: Program,
    ) -> None:
        gc.disable()
        self._program = program
        self._found: list[Searched] = []
        self._told_at = 0.0
        self._collected_at = 0.0
        self._hand = hand(settings)

    def __call__(self, batch: Batch) -> list[Outcome]:
        """Search a batch. Outcomes are told of meanwhile; those that are left over are returned."""
        if self._told_at:
            self._collect()
        for searched in self._hand.searches(batch, self._look):
            self._found.append(searched)
            if time.monotonic() - self._told_at >= _TELL_INTERVAL_S:
                self._program.tell(self._outcomes())
                self._collect()
        return self._outcomes()

    def beside(self, threads: int) -> None:
        """Let so many threads search from now on, since others have nothing to do."""
        self._hand.assist(threads)

    def _look(self) -> None:
        """Ten times a second, while it searches."""
        self._program.look()
        if self._found:
            self._program.tell(self._outcomes())
        self._collect()

    def _outcomes(self) -> list[Outcome]:
        """Take those that have not been told."""
        found, self._found = self._found, []
        self._told_at = time.monotonic()
        return [searched.outcome() for searched in found]

    def _collect(self) -> None:
        """Collect garbage, if it is time for that."""
        now = time.monotonic()
        if now - self._collected_at >= _COLLECT_INTERVAL_S:
            gc.collect()
            if not self._collected_at:
                gc.freeze()  # what the first search has imported is no garbage, and need not be looked at again
            self._collected_at = now
