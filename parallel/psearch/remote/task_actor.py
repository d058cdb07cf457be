"""A process on a node, as a Ray actor; and the code of a machine: what is installed, and modules that are not, whose
text goes there with the work.

Ray carries the text of the actor to the node, so that it can say what is wrong where psearch is missing or another one:
it imports psearch, this module too, only when it is called.
"""

from __future__ import annotations

import hashlib
import importlib.abc
import importlib.util
import pickle
import signal
import sys
import threading
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from psearch.version import __version__

Sources = Mapping[str, str]
"""The text of modules by name; `NAME.__init__` for that of a package."""
_PACKAGE = ".__init__"
BEATS = "beats"
"""The concurrency group in which an actor says that it lives while it works."""


class TaskActor:
    """One process on some node, which does one task after the other. Exceptions are told as answers, pickled."""

    _perform: Any = None

    def node(self) -> str:
        """Return Ray's number of the node."""
        import ray

        return str(ray.get_runtime_context().get_node_id())

    def begin(self, ours: Mapping[str, str], make: bytes, sources: Mapping[str, str]) -> str | None:
        """Make what does the tasks, which may take long. Return why that is impossible here, in one line.

        ours: the program's `identity`; make, sources: see `psearch.remote.ray_actors.Wanted`.
        """
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # where a terminal started the node; the driver decides
        try:
            from psearch.processes.tasks import one_line
            from psearch.remote.task_actor import identity, provide
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
        from psearch.processes.tasks import performed

        return performed(self._perform, task)

    def beat(self) -> None:
        """Answer beside the task, by another thread: an actor that answers has not stalled."""

    # what ray.method(concurrency_group=...) does; Ray's client cannot be told it with the call
    beat.__dict__["__ray_concurrency_group__"] = BEATS


@cache
def identity() -> dict[str, str]:
    """Return version, digest of the code (two checkouts may have one version), and version of Python, by name."""
    python = ".".join(map(str, sys.version_info[:2]))
    return {"psearch": __version__, "code of psearch": _digest(), "Python": python}


def _digest() -> str:
    """Return a digest of every source file and of the network: names and bytes."""
    files = {}
    for name in ("psearch", "psearch_core"):
        folder = Path(importlib.import_module(name).__path__[0])
        for path in [*folder.rglob("*.py"), *folder.rglob("*.net")]:
            files[(name, *path.relative_to(folder).parts)] = hashlib.sha256(path.read_bytes()).digest()
    return hashlib.sha256(repr(sorted(files.items())).encode()).hexdigest()[:12]


def provide(sources: Sources) -> None:
    """Let `import` find these modules in this process, behind all that is installed."""
    sys.meta_path.append(_Finder(sources))


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    def __init__(self, sources: Sources) -> None:
        self._sources = sources

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        if fullname not in self._sources and not self.is_package(fullname):
            return None
        return importlib.util.spec_from_loader(fullname, self, origin="sent along")

    def is_package(self, fullname: str) -> bool:
        return fullname + _PACKAGE in self._sources

    def get_source(self, fullname: str) -> str:
        return self._sources[fullname + _PACKAGE * self.is_package(fullname)]
