"""The bytes of a file that stays open: of an opening book, of endgame tables."""

from __future__ import annotations

import mmap
import os
import stat

_COPIED = 64 << 20
"""Files up to this size are copied: all books, and all tables of five men."""


def file_bytes(path: str) -> mmap.mmap:
    """Return the bytes of a regular file, as python-chess's readers take them. Raises OSError.

    A mapped file that is cut short while it is in use, or that the disk fails to give, ends the whole program (SIGBUS).
    So small files are copied into memory; larger ones are mapped.
    """
    # a pipe without a writer would not even let itself be opened otherwise
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError("it is not a regular file")
        if status.st_size > _COPIED:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        data = file.read()
    if not data:
        raise OSError("it is empty")
    copy = mmap.mmap(-1, len(data))
    copy[:] = data
    return copy
