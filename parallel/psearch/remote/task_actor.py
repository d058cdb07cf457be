"""The Ray actor that does tasks on a node; it compares the installed code, and imports modules whose text was sent.

Ray sends the code of the actor to the node. The actor imports psearch, including this module, only when it is called,
so that it can report a missing or different installation.
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
"""Source text of modules by name; that of a package has the name `NAME.__init__`."""
_PACKAGE = ".__init__"
BEATS = "beats"
"""Concurrency group in which an actor answers heartbeats during a task."""


class TaskActor:
    """A process on a node, which does one task after the other. Exceptions are returned as pickled answers."""

    _perform: Any = None

    def node(self) -> str:
        """Return Ray's identifier of the node."""
        import ray

        return str(ray.get_runtime_context().get_node_id())

    def begin(self, ours: Mapping[str, str], make: bytes, sources: Mapping[str, str]) -> str | None:
        """Make the function for the tasks, which may take long. Return one line if that is impossible on this node.

        ours: the program's `identity`; make, sources: see `psearch.remote.ray_actors.Wanted`.
        """
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # the node may belong to a terminal; the driver decides
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
        except Exception as error:  # of the program's own function
            return one_line(error)
        return None

    def do(self, task: bytes) -> tuple[bool, bytes]:
        """Do a pickled task; return whether it succeeded, and the pickled answer or exception."""
        from psearch.processes.tasks import performed

        return performed(self._perform, task)

    def beat(self) -> None:
        """Answer a heartbeat in a second thread, during a task."""

    # as ray.method(concurrency_group=...) does; Ray's client cannot pass the group with a call
    beat.__dict__["__ray_concurrency_group__"] = BEATS


@cache
def identity() -> dict[str, str]:
    """Return the versions of psearch and Python, and a digest of the code: two checkouts may have the same version."""
    python = ".".join(map(str, sys.version_info[:2]))
    return {"psearch": __version__, "code of psearch": _digest(), "Python": python}


def _digest() -> str:
    """Return a digest of the names and bytes of all source files and networks."""
    files = {}
    for name in ("psearch", "psearch_core"):
        folder = Path(importlib.import_module(name).__path__[0])
        for path in [*folder.rglob("*.py"), *folder.rglob("*.net")]:
            files[(name, *path.relative_to(folder).parts)] = hashlib.sha256(path.read_bytes()).digest()
    return hashlib.sha256(repr(sorted(files.items())).encode()).hexdigest()[:12]


def provide(sources: Sources) -> None:
    """Let this process import these modules, unless installed ones have the same names."""
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
