"""Modules that are not installed on the nodes: their text goes there with the work, as of the bench's programs."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType

Sources = Mapping[str, str]
"""The text of modules by name; `NAME.__init__` for that of a package."""
_PACKAGE = ".__init__"


def sources_of(folder: Path, names: Sequence[str]) -> dict[str, str]:
    """Return the text of modules and packages (without packages in them) that lie in a folder."""
    sources = {}
    for name in names:
        package = folder / name
        if package.is_dir():
            sources.update({f"{name}.{path.stem}": path.read_text("utf-8") for path in sorted(package.glob("*.py"))})
        else:
            sources[name] = (folder / f"{name}.py").read_text("utf-8")
    return sources


def provide(sources: Sources) -> None:
    """Have these modules be found by `import` in this process, behind all that is installed."""
    if sources:
        sys.meta_path.append(_Finder(sources))


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    def __init__(self, sources: Sources) -> None:
        self._sources = sources

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in self._sources and fullname + _PACKAGE not in self._sources:
            return None
        return importlib.util.spec_from_loader(fullname, self, origin="sent along")

    def is_package(self, fullname: str) -> bool:
        return fullname + _PACKAGE in self._sources

    def get_source(self, fullname: str) -> str:
        return self._sources.get(fullname + _PACKAGE) or self._sources.get(fullname) or ""
