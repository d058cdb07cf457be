"""What a program may overwrite: files of the kind that it writes itself, and nothing else that a name may hit."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

from psearch.results import PsearchError

_HEAD = 1 << 16
"""bytes"""


def may_replace(path: Path, is_ours: Callable[[bytes], bool]) -> bool:
    """Tell whether a file may take this place: there is none, or a device or pipe, which is written to, or one of our
    kind.

    is_ours: judges the first bytes, 64 KiB at most. Raises OSError when what is there cannot be read.
    """
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return True
        with path.open("rb") as file:
            return is_ours(file.read(_HEAD))
    except FileNotFoundError:
        return True


def check_replaceable(path: Path, kind: str, is_ours: Callable[[bytes], bool]) -> None:
    """Raise PsearchError if there is a file, not an empty one, that is not of our kind; it may be worth something.

    kind: for the message, such as `a PNG picture`; is_ours: as for `may_replace`.
    """
    try:
        may_go = may_replace(path, lambda head: not head.strip() or is_ours(head))
    except OSError as error:
        raise PsearchError(f"cannot write {path}: {error.strerror}") from None
    if not may_go:
        raise PsearchError(f"{path} is not {kind}, and is not replaced: choose another name, or delete it")


def is_png(head: bytes) -> bool:
    """Tell whether a file that begins so is a PNG picture."""
    return head.startswith(b"\x89PNG\r\n\x1a\n")
