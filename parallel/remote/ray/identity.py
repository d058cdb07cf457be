"""Who a node is: the version of psearch, and a digest of its code, for two checkouts may have one version."""

from __future__ import annotations

import hashlib
import importlib
import platform
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from psearch.version import __version__

_ROOTS = ("psearch", "psearch.core")
"""In a checkout they lie beside each other."""
_DIGITS = 12


@cache
def identity() -> dict[str, str]:
    """Return version, digest of the code, and version of Python, by name."""
    return {"psearch": __version__, "code": _digest(), "python": platform.python_version()}


def difference(ours: Mapping[str, str], theirs: Mapping[str, str]) -> str | None:
    """Return why what a node is does not do, in one line; None: it does. Of Python only major and minor version
    count."""
    if "psearch" not in theirs:
        return theirs.get("problem", "psearch is not installed there: install there what this machine has")
    if theirs["psearch"] != ours["psearch"]:
        return f"psearch {theirs['psearch']} is installed there, here {ours['psearch']}"
    if theirs.get("code") != ours["code"]:
        return f"other code of psearch {ours['psearch']} is installed there ({theirs.get('code')}, here {ours['code']})"
    there, here = (one["python"].rsplit(".", 1)[0] for one in (theirs, ours))
    return None if there == here else f"Python {there} runs there, here {here}"


def _digest() -> str:
    """Return a digest of every source file and of the network: names and bytes."""
    digest = hashlib.sha256()
    for root in _ROOTS:
        folder = Path(importlib.import_module(root).__path__[0])
        for path in sorted([*folder.rglob("*.py"), *folder.rglob("*.net")]):
            name = path.relative_to(folder).as_posix()
            if root != "psearch" or not name.startswith("core/"):
                digest.update(f"{root}/{name}\0{path.stat().st_size}\0".encode())
                digest.update(path.read_bytes())
    return digest.hexdigest()[:_DIGITS]
