"""A hand as a Ray actor: made once, it does one piece of work after the other and says that it lives.

What it does belongs to the program: of that nothing is unpickled on the way, exceptions included.
"""

from __future__ import annotations

import pickle
import signal
import threading
from typing import Any

from psearch.processes.tasks.task_messages import one_line, performed
from psearch.remote.ray.sources import Sources, provide

BEATS = "beats"
"""the concurrency group in which a hand says that it lives while it works"""


class HandActor:
    """One process on some node. make, sources: see `HandsWanted`."""

    def __init__(self, make: bytes, sources: Sources) -> None:
        provide(sources)
        self._make = make
        self._do: Any = None

    def begin(self) -> str | None:
        """Make what does the work, which may take long; why that failed, in one line."""
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # where a terminal started the node; the driver decides
        try:
            self._do = pickle.loads(self._make)()
        except Exception as error:  # of whatever the program wants here
            return one_line(error)
        return None

    def do(self, work: bytes) -> tuple[bool, bytes]:
        """Tell whether a pickled piece of work was done, and the pickled answer, or exception."""
        return performed(self._do, work)

    def beat(self) -> None:
        """Answer beside the work, by another thread: whoever answers has not stalled."""

    # what ray.method(concurrency_group=...) does; Ray's client cannot be told it with the call
    beat.__dict__["__ray_concurrency_group__"] = BEATS
