"""What a terminal shows while the program is not ready yet, if that takes long."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from contextlib import suppress
from types import FrameType

from psearch.terminal.streams import can_redraw

PATIENCE_S = 0.3
"""from the start of the program; what is ready by then says nothing"""
_LEAST_S = 0.001
_TEXT = b"loading"
_ERASE = b"\r\x1b[2K"


class Loading:
    """Shows `loading` on stderr when it lasts, and takes it away at the end; a context manager.

    since: when the user began to wait, by `time.monotonic`. A timer of the system does it: workers may be forked
    meanwhile, which a thread would forbid, and rich would have to be imported, for which the user would wait as well.
    Elsewhere than on a terminal, and outside the main thread, nothing is shown.
    """

    def __init__(self, since: float) -> None:
        self._since = since
        self._runs = False
        self._is_shown = False

    def __enter__(self) -> Loading:
        free = signal.getsignal(signal.SIGALRM) == signal.SIG_DFL and signal.getitimer(signal.ITIMER_REAL)[0] == 0.0
        if free and can_redraw(sys.stderr) and threading.current_thread() is threading.main_thread():
            self._runs = True
            signal.signal(signal.SIGALRM, self._show)
            signal.setitimer(signal.ITIMER_REAL, max(_LEAST_S, self._since + PATIENCE_S - time.monotonic()))
        return self

    def __exit__(self, *exception: object) -> None:
        self.end()

    def end(self) -> None:
        """Ready, or something else has its say now. May be called again."""
        if not self._runs:
            return
        self._runs = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        if self._is_shown:
            _write(_ERASE)

    def _show(self, number: int, frame: FrameType | None) -> None:
        self._is_shown = True
        _write(_TEXT)


def _write(text: bytes) -> None:
    """Past the stream, which may be in the middle of a line of its own."""
    with suppress(OSError, ValueError):
        os.write(sys.stderr.fileno(), text)
