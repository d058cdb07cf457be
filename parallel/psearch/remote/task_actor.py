"""A process on a node, as a Ray actor. Ray carries the text of this module there, so that it can say what is wrong
where psearch is missing or another one: it imports psearch only when it is called."""

from __future__ import annotations

import pickle
import signal
import threading
from collections.abc import Mapping
from typing import Any

BEATS = "beats"
"""the concurrency group in which an actor says that it lives while it works"""


class TaskActor:
    """One process on some node, which does one task after the other. Exceptions are told as answers, pickled."""

    _perform: Any = None

    def node(self) -> str:
        """Return Ray's number of the node."""
        import ray

        return str(ray.get_runtime_context().get_node_id())

    def begin(self, ours: Mapping[str, str], make: bytes, sources: Mapping[str, str]) -> str | None:
        """Make what does the tasks, which may take long. Return why that is impossible here, in one line.

        ours: the program's `psearch.remote.node_code.identity`; make, sources: see `psearch.remote.ray_actors.Wanted`.
        """
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # where a terminal started the node; the driver decides
        try:
            from psearch.processes.tasks.task_messages import one_line
            from psearch.remote.node_code import identity, provide
        except ImportError:
            return "psearch is not installed there, or another version: install there what this machine has"
        for what, there in identity().items():
            if there != ours.get(what):
                return f"{what} {there} is installed there, here {ours.get(what)}"
        provide(sources)
        try:
            self._perform = pickle.loads(make)()
        except Exception as error:  # of whatever the program wants here
            return one_line(error)
        return None

    def do(self, task: bytes) -> tuple[bool, bytes]:
        """Tell whether a pickled task was done, and the pickled answer, or exception."""
        from psearch.processes.tasks.task_messages import performed

        return performed(self._perform, task)

    def beat(self) -> None:
        """Answer beside the task, by another thread: an actor that answers has not stalled."""

    # what ray.method(concurrency_group=...) does; Ray's client cannot be told it with the call
    beat.__dict__["__ray_concurrency_group__"] = BEATS
