"""Control of a running search from other threads, and a descriptor that wakes a waiting thread.

Imports nothing heavy: the UCI loop needs it before any kernel is loaded.
"""

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
    """Controls a search from any thread, before or while it runs; once the search is over, calls have no effect.

    `stop` may also be called by a signal handler. It is permanent: when several searches share a control, all end.
    """

    def __init__(self, clock: TimeManager | None = None, asked_at: float | None = None) -> None:
        self.clock = clock
        """Time manager of the search; None: each search makes one from its `Limits.movetime_ms`."""
        self.asked_at = asked_at
        """Moment of the request, on `time.perf_counter`, from which time counts; None: it counts from the start."""
        # reentrant: a signal handler may run in the thread that holds the lock
        self._lock = threading.RLock()
        self._wake: Callable[[], None] | None = None
        self.is_stopped = False
        """Whether `stop` was called."""
        self._ponderhit: float | None = None
        self._threads: int | None = None

    def stop(self) -> None:
        """End the search as soon as it has a move to show."""
        with self._lock:
            self.is_stopped = True
            self._wake_search()

    def ponderhit(self) -> None:
        """Start our clock: the opponent has played the expected move."""
        with self._lock:
            self._ponderhit = time.perf_counter()
            self._wake_search()

    def allow(self, threads: int) -> None:
        """Raise the number of workers to `threads`, if there are fewer: at once, or from the next search on."""
        with self._lock:
            self._threads = threads
            self._wake_search()

    def _wake_search(self) -> None:
        if self._wake is not None:
            self._wake()

    def attach(self, wake: Callable[[], None] | None) -> None:
        """Set the function that wakes the thread of the running search; None when the search is over."""
        with self._lock:
            self._wake = wake

    def take_ponderhit(self) -> float | None:
        """Return when `ponderhit` was called, on `time.perf_counter`, and clear that; None if it was not called."""
        with self._lock:
            called, self._ponderhit = self._ponderhit, None
        return called

    def take_threads(self) -> int | None:
        """Return the number of the last call of `allow`, and clear it; None if it was not called."""
        with self._lock:
            threads, self._threads = self._threads, None
        return threads


class Wake:
    """A descriptor that is readable between `set` and `clear`, for any thread and for signal handlers.

    It is a pipe to the process itself, since not every Python has `os.eventfd`. Raises PsearchError.
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
        """Make the descriptor readable."""
        with suppress(BlockingIOError):  # the pipe is full: it is readable already
            os.write(self._writer, b".")

    def clear(self) -> None:
        """Undo all calls of `set`."""
        with suppress(BlockingIOError):
            while os.read(self._reader, 4096):
                continue

    def close(self) -> None:
        os.close(self._reader)
        os.close(self._writer)
