"""The code of a machine: what is installed, and modules that are not, whose text goes there with the work."""

from __future__ import annotations

import hashlib
import importlib.abc
import importlib.util
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from psearch.version import __version__

Sources = Mapping[str, str]
"""The text of modules by name; `NAME.__init__` for that of a package."""
_PACKAGE = ".__init__"


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
