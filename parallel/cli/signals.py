"""SIGINT and SIGTERM during a command."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType

from psearch.cli.exit_status import EXIT_SIGNAL
from psearch.processes.control import SearchControl


class Interrupted(KeyboardInterrupt):
    """SIGINT or SIGTERM arrived where there is nothing yet to report."""


class Signals:
    """SIGINT and SIGTERM: a stop request while a search runs, an exception at any other time.

    A second signal is always an exception, so that an impatient user gets out.
    """

    def __init__(self) -> None:
        self.control = SearchControl()
        """of the search, and of those that follow"""
        self.searching = False
        self.received: int | None = None
        self._former: dict[int, Callable[[int, FrameType | None], object] | int | None] = {}

    def __enter__(self) -> Signals:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._former[number] = signal.signal(number, self._receive)
        return self

    def __exit__(self, *exception: object) -> None:
        for number, handler in self._former.items():
            signal.signal(number, handler)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if self.searching and self.received is None:
            self.received = number
            self.control.stop()
        else:
            self.received = number
            raise Interrupted

    @property
    def exit_status(self) -> int:
        """0, or 128 + the number of the signal that arrived."""
        return EXIT_SIGNAL + self.received if self.received else 0
