"""A status line on stderr."""

from __future__ import annotations

import math
import sys
import time
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import TYPE_CHECKING

from psearch.terminal.streams import can_redraw, is_terminal, printable

if TYPE_CHECKING:
    from rich.live import Live

_INTERVAL_S = 5.0


class StatusLine(AbstractContextManager["StatusLine"]):
    """Status line on stderr: redrawn in place on a terminal, else printed every few seconds. A context manager.

    only_terminal: write nothing if stderr is not a terminal. It uses no thread, so that signals and forks meet one.
    """

    def __init__(self, only_terminal: bool = False) -> None:
        self._stream = sys.stderr
        self._silent = self._stream is None or (only_terminal and not is_terminal(self._stream))
        self._live: Live | None = None
        self._began: tuple[float, float] | None = None
        """Start time of the present work, and the amount done by then."""
        self._done = 0.0
        self._next_line_at = 0.0

    def __exit__(self, *exception: object) -> None:
        self.make_room()

    def make_room(self) -> None:
        """Remove the line, so that something else can be written."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def __call__(self, text: str, done: float = 0, total: float = 0) -> None:
        """Show one line of text, and the time left if `done` and `total` are given, in any unit."""
        if self._silent:
            return
        text = printable(text) + (self._time_left(done, total) if total else "")
        if not can_redraw(self._stream):
            if time.monotonic() >= self._next_line_at:
                self._next_line_at = time.monotonic() + _INTERVAL_S
                print(text, file=self._stream, flush=True)
            return
        from rich.text import Text

        if self._live is None:
            from rich.console import Console
            from rich.live import Live

            console = Console(file=self._stream, force_terminal=True)
            self._live = Live(
                console=console, auto_refresh=False, transient=True, redirect_stdout=False, redirect_stderr=False
            )
            self._live.start()
        self._live.update(Text(text, no_wrap=True, overflow="ellipsis"), refresh=True)

    def _time_left(self, done: float, total: float) -> str:
        """Estimate the time left from the mean speed. If less is done than before, other work has begun."""
        now = time.monotonic()
        if self._began is None or done < self._done:
            self._began = now, done
        self._done = done
        since, before = self._began
        if not before < done < total:
            return ""
        return f", {timedelta(seconds=math.ceil((now - since) * (total - done) / (done - before)))} left"
