"""SIGINT, SIGTERM and SIGHUP during a command."""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType

from psearch.faces.cli.exit_status import EXIT_SIGNAL
from psearch.processes.control import SearchControl

_SAME_S = 0.5
"""Signals this close together are one."""


class Interrupted(KeyboardInterrupt):
    """A signal arrived where there is nothing yet to report."""


class Signals:
    """SIGINT, SIGTERM and SIGHUP: a stop request while a search runs, an exception at any other time.

    What comes within half a second belongs to the signal before: `timeout`, and other supervisors, signal the process
    and then its group. A second signal is always an exception, so that an impatient user gets out; one that comes while
    the command ends after such an exception ends the process there and then, and one after the command is without
    effect. SIGHUP stays ignored where it was, as under nohup. What `ends_program` ignores SIGINT ever after, and all
    three once one was received: neither a Ctrl-C too many nor the second signal of a supervisor disturbs what the
    interpreter still has to do.
    """

    def __init__(self, ends_program: bool = False) -> None:
        self.control = SearchControl()
        """of the search, and of those that follow"""
        self.searching = False
        self.received: int | None = None
        """the latest that was heeded"""
        self.is_over = False
        """set when the command has ended: nobody would catch an exception"""
        self._received_s = -math.inf
        """when that was"""
        self._ends_program = ends_program
        self._has_raised = False
        self._former: dict[int, Callable[[int, FrameType | None], object] | int | None] = {}

    def __enter__(self) -> Signals:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                    self._former[number] = signal.signal(number, self._receive)
        return self

    def __exit__(self, *exception: object) -> None:
        for number, handler in self._former.items():
            ignored = self._ends_program and (number == signal.SIGINT or self.received is not None)
            signal.signal(number, signal.SIG_IGN if ignored else handler)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        now_s = time.monotonic()
        if self.is_over or now_s - self._received_s < _SAME_S:
            return
        self._received_s = now_s
        if self.searching and self.received is None:
            self.received = number
            self.control.stop()
        elif self._has_raised:
            os._exit(EXIT_SIGNAL + number)
        else:
            self.received = number
            self._has_raised = True
            raise Interrupted

    @property
    def exit_status(self) -> int:
        """0, or 128 + the number of the signal that arrived."""
        return EXIT_SIGNAL + self.received if self.received else 0
