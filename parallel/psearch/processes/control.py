"""Steering a search from outside, and waking who waits. Imports nothing heavy: the UCI loop has it before any kernel is
loaded."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
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
        self.is_stopped = False
        """whether `stop` was called"""
        self._ponderhit: float | None = None
        self._threads: int | None = None

    def stop(self) -> None:
        """End the search as soon as it has a move to show."""
        with self._lock:
            self.is_stopped = True
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

    def _wake_search(self) -> None:
        if self._wake is not None:
            self._wake()

    def attach(self, wake: Callable[[], None] | None) -> None:
        """Take, from the search, what wakes the thread that watches it; None when it is over."""
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


class Wake:
    """A descriptor that is readable from `set` on until `clear`. From any thread, and from signal handlers.

    A pipe to the process itself: not every Python has `os.eventfd`, and this does as well. Raises PsearchError.
    """

    def __init__(self) -> None:
        try:
            self._reader, self._writer = os.pipe()
        except OSError as error:
            from psearch.arena.system_calls import refusal
            from psearch.results import PsearchError

            raise PsearchError(f"cannot wait for workers: {refusal(error)}") from error
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)

    def fileno(self) -> int:
        return self._reader

    def set(self) -> None:
        """Set it; without effect if it is set already."""
        with suppress(BlockingIOError):  # full
            os.write(self._writer, b".")

    def clear(self) -> None:
        """Undo all calls of `set`."""
        with suppress(BlockingIOError):
            while os.read(self._reader, 4096):
                continue

    def close(self) -> None:
        """Give the descriptors back."""
        os.close(self._reader)
        os.close(self._writer)
