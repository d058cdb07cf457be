"""Where a trace goes: looked at before the search, replaced as a whole after it."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from psearch.files.atomic_file import AtomicFile
from psearch.results import PsearchError


def _is_special(path: Path) -> bool:
    """A device or a pipe: written to, never replaced."""
    return path.exists() and not stat.S_ISREG(path.stat().st_mode)


def check_trace(path: Path) -> None:
    """Raise PsearchError if a trace cannot be written there. Leaves what is there as it is."""
    if str(path) == "-":
        raise PsearchError("a trace goes to a file: standard output is for the answer")
    target = Path(os.path.realpath(path))
    folder = target.parent
    if target.is_dir():
        reason = "it is a folder"
    elif not folder.is_dir():
        reason = f"there is no folder {folder}"
    elif not os.access(target if target.exists() else folder, os.W_OK):
        reason = "permission denied"
    elif not _is_special(target) and not os.access(folder, os.W_OK | os.X_OK):
        reason = f"permission denied in {folder}"
    else:
        return
    raise PsearchError(f"cannot write the trace {path}: {reason}")


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[TextIO]:
    """Open a new file that takes the place of the old one at the end, if nothing went wrong."""
    target = Path(os.path.realpath(path))
    if _is_special(target):
        with target.open("w", encoding="utf-8") as out:
            yield out
        return
    with AtomicFile(target, target.with_name(f".{target.name}.{os.getpid()}.new")) as out:
        yield out.stream
        out.commit()
