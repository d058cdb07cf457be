"""A user's file of kernels, as it is read: by the program that names it, and by the compiler that runs it."""

from __future__ import annotations

import errno
import os
import re
import stat

from psearch.core.toolchain.kernel_cache import PlugInError

_MOST_BYTES = 1 << 20
_MOST_WORDS = 1 << 17
"""of memory of its own: a mebibyte"""
_WORDS = re.compile(rb"^WORDS\b[^=\n]*=[ \t]*([^#\r\n]*)", re.MULTILINE)
_DIGITS = re.compile(rb"[0-9]{1,7}")


def read_plug_in(file: str) -> bytes:
    """Return the content of a file. Raises OSError, also for what is no regular file of a mebibyte at most."""
    # a pipe without a writer is not waited for
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
        with open(descriptor, "rb", closefd=False) as source:
            content = source.read(_MOST_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(content) > _MOST_BYTES:
        raise OSError(errno.EFBIG, "it is larger than 1 MiB")
    return content


def words_of(file: str, content: bytes) -> int:
    """Return N of the line `WORDS = N`, 0 if there is none. Raises PlugInError for another N than one that will do."""
    words = 0
    for found in _WORDS.finditer(content):
        number = found[1].strip()
        words = int(number) if _DIGITS.fullmatch(number) else _MOST_WORDS + 1
        if words > _MOST_WORDS:
            line = content.count(b"\n", 0, found.start()) + 1
            raise PlugInError(f"{file}:{line}: WORDS must be a whole number from 0 to {_MOST_WORDS}")
    return words
