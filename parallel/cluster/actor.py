"""A hand as a Ray actor: made once, it does one piece of work after the other and says that it lives."""

from __future__ import annotations

import os
import pickle
import signal
import threading
from collections.abc import Callable
from typing import Any


class Hand:
    """One process on some node. make: pickled, see `HandsWanted`."""

    def __init__(self, make: bytes) -> None:
        self._make = make
        self._do: Callable[[Any], Any] | None = None

    def begin(self) -> int:
        """Make what does the work, which may take long; the process number."""
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # where a terminal started the node; the driver decides
        self._do = pickle.loads(self._make)()
        return os.getpid()

    def do(self, work: bytes) -> bytes:
        """The pickled answer to a pickled piece of work."""
        assert self._do is not None
        return pickle.dumps(self._do(pickle.loads(work)))

    def beat(self) -> None:
        """Asked beside the work, by another thread: whoever answers has not stalled."""
