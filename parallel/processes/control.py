"""What other threads may say to a search. Imports nothing heavy: the UCI loop has it before any kernel is loaded."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from psearch.processes.time_manager import TimeManager


class SearchControl:
    """Steers a search from any thread: before it begins, while it runs, and without effect once it is over."""

    def __init__(self, clock: TimeManager | None = None, asked_at: float | None = None) -> None:
        self.clock = clock
        """decides when to stop; the watching thread feeds it"""
        self.asked_at = asked_at
        """when the search was asked for, on `time.perf_counter`: time counts from then on; None: from its begin"""
        self._lock = threading.Lock()
        self._wake: Callable[[], None] | None = None
        self._stop = False
        self._ponderhit = False

    def stop(self) -> None:
        """End the search as soon as it has a move to show."""
        with self._lock:
            self._stop = True
            self._call()

    def ponderhit(self) -> None:
        """The expected move was played: the clock of `clock` begins to run."""
        with self._lock:
            self._ponderhit = True
            self._call()

    @property
    def is_stopped(self) -> bool:
        """Whether `stop` was called."""
        return self._stop

    def _call(self) -> None:
        if self._wake is not None:
            self._wake()

    def attach(self, wake: Callable[[], None] | None) -> None:
        """Called by the search: what to call when something was said; None when it is over."""
        with self._lock:
            self._wake = wake

    def take_ponderhit(self) -> bool:
        """Whether `ponderhit` was called since the last look."""
        with self._lock:
            called, self._ponderhit = self._ponderhit, False
        return called
