"""Steering a search from outside. Imports nothing heavy: the UCI loop has it before any kernel is loaded."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from psearch.processes.time_manager import TimeManager


class SearchControl:
    """Steers a search from any thread: before it begins, while it runs, and without effect once it is over.

    `stop` may be called by a signal handler, too. Once stopped it stays so: several searches one after the other
    may share one control, and all end.
    """

    def __init__(self, clock: TimeManager | None = None, asked_at: float | None = None) -> None:
        self.clock = clock
        """decides when to stop, fed by the watching thread; None: made for each search from its `Limits.movetime_ms`"""
        self.asked_at = asked_at
        """when the search was requested, on `time.perf_counter`: time counts from then on; None: from its begin"""
        # reentrant: the handler of a signal may run in the thread that holds it
        self._lock = threading.RLock()
        self._wake: Callable[[], None] | None = None
        self._stop = False
        self._ponderhit: float | None = None
        self._threads: int | None = None

    def stop(self) -> None:
        """End the search as soon as it has a move to show."""
        with self._lock:
            self._stop = True
            self._wake_search()

    def ponderhit(self) -> None:
        """Start the clock of `clock`: the expected move was played."""
        with self._lock:
            self._ponderhit = time.perf_counter()
            self._wake_search()

    def allow(self, threads: int) -> None:
        """Let so many workers search, where there are fewer: at once, or from the next search on."""
        with self._lock:
            self._threads = threads
            self._wake_search()

    @property
    def is_stopped(self) -> bool:
        """Whether `stop` was called."""
        return self._stop

    def _wake_search(self) -> None:
        if self._wake is not None:
            self._wake()

    def attach(self, wake: Callable[[], None] | None) -> None:
        """Called by the search: what wakes the thread that watches it; None when it is over."""
        with self._lock:
            self._wake = wake

    def take_ponderhit(self) -> float | None:
        """Return when `ponderhit` was called since the last look, on `time.perf_counter`; None if it was not."""
        with self._lock:
            called, self._ponderhit = self._ponderhit, None
        return called

    def take_threads(self) -> int | None:
        """Return what `allow` was called with since the last look."""
        with self._lock:
            threads, self._threads = self._threads, None
        return threads
