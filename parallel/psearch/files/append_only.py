"""Append-only files of JSON, one value a line: what a long run has finished, safe from the moment it is finished.

A line is handed to the system before `append` returns, so a kill at any moment loses none, and a power cut no more than
those of the last `sync_interval_s`. A last line cut short by a kill or a full disk is told from the others by having no
end; who goes on with the file drops it. Nothing else is ever dropped: a file that does not begin like ours, or is
damaged further up, is refused and stays as it is.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import math
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from psearch.files.json_text import json_value

_BLOCK = 1 << 14
"""bytes"""
_LONGEST_LINE = 1 << 26
"""Bytes; a thousand times what any journal of ours holds."""
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)
"""What file systems say that cannot lock, such as NFS without its lock daemon."""


class JournalLine(NamedTuple):
    """A complete line of a journal."""

    number: int
    """from 1"""
    offset: int
    """bytes before it"""
    value: Any


class DamagedLine(ValueError):
    """A line that is none of ours: complete and not JSON, longer than any, or another beginning than the file's."""

    def __init__(self, path: Path, number: int) -> None:
        super().__init__(f"{path}: line {number} is not JSON of this kind")
        self.number = number


class Journal:
    """An open journal, locked against other processes where the file system can; a context manager.

    opening: how the first line of such a file begins, where all lines are objects; fresh: what is in the file goes;
    otherwise it must be read to its end before anything is appended. sync_interval_s: least seconds between two waits
    for the disk; 0 waits for every line. flags: more of those of `os.open`. Raises BlockingIOError when another process
    has the journal open, DamagedLine where another file would go. Every OSError names the file.
    """

    def __init__(
        self,
        path: Path,
        opening: bytes = b"",
        *,
        fresh: bool = False,
        sync_interval_s: float = math.inf,
        flags: int = 0,
    ) -> None:
        self.path = path
        self._opening = opening
        self.torn = b""
        """what follows the last complete line, once all are read"""
        self._end = 0
        self._has_failed = False
        """the last `append`: there may be a piece of its line after `_end`"""
        self._sync_interval_s = sync_interval_s
        self._synced_at = time.monotonic()
        self._file = _open(path, flags)
        try:
            with self._naming():
                self.is_regular = stat.S_ISREG(os.fstat(self._file).st_mode)
                if self.is_regular:
                    self._lock()
                    if fresh:
                        head = os.pread(self._file, len(opening), 0)
                        if head[: len(opening)] != opening[: len(head)]:
                            raise DamagedLine(path, 1)
                        os.ftruncate(self._file, 0)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Give up the lock."""
        os.close(self._file)

    def _lock(self) -> None:
        try:
            # record locks are not inherited: workers that outlive a killed parent hold none
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno == errno.EACCES:  # POSIX leaves the choice
                raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN)) from None
            if error.errno not in _NO_LOCKS:
                raise

    def lines(self) -> Iterator[JournalLine]:
        """Yield the complete lines. Raises DamagedLine."""
        self._end = 0
        self.torn = b""
        # closing any descriptor of the file would give the lock up
        with open(self._file, "rb", closefd=False) as lines:
            lines.seek(0)
            for number, line in enumerate(iter(lambda: lines.readline(_LONGEST_LINE), b""), start=1):
                is_complete = line.endswith(b"\n")
                if not self._is_ours(line, number, is_complete) or (not is_complete and len(line) == _LONGEST_LINE):
                    raise DamagedLine(self.path, number)
                if not is_complete:
                    self.torn = line
                    return
                try:
                    value = json_value(line)
                except ValueError:
                    raise DamagedLine(self.path, number) from None
                yield JournalLine(number, self._end, value)
                self._end += len(line)

    @classmethod
    def at_end(cls, path: Path, opening: bytes) -> Journal:
        """Open a journal to add lines to it, whatever they say; a torn one is dropped. Raises DamagedLine, too."""
        journal = cls(path, opening)
        try:
            for _ in journal.lines():
                pass
            journal.cut()
        except BaseException:
            journal.close()
            raise
        return journal

    def _is_ours(self, line: bytes, number: int, is_complete: bool) -> bool:
        """Tell whether a line begins like one of ours. Of a torn one the system may have kept zeros in place of what
        was written last."""
        opening = self._opening if number == 1 else self._opening[:1]
        written = line if is_complete else line.rstrip(b"\0")
        return written[: len(opening)] == (opening if is_complete else opening[: len(written)])

    def cut(self, offset: int | None = None) -> None:
        """Drop everything from this offset on; without one, the torn line."""
        if offset is not None:
            self._end = offset
        self.torn = b""
        with self._naming():
            os.ftruncate(self._file, self._end)

    def value_at(self, offset: int) -> Any:
        """Return the value of the line there: for who keeps offsets because the values would fill the memory.

        Raises ValueError when another program has written to the file, and no such line is there any more.
        """
        line = bytearray()
        while b"\n" not in line and len(line) < _LONGEST_LINE:
            block = os.pread(self._file, _BLOCK, offset + len(line))
            if not block:
                raise ValueError(f"no line begins at {offset}")
            line += block
        return json_value(line.split(b"\n", 1)[0])

    def append(self, value: Any) -> int:
        """Add a line; the offset at which it begins. After an OSError it counts as torn: the next takes its place."""
        line = memoryview(json.dumps(value).encode() + b"\n")
        begin = at = self._end
        with self._naming():
            if self._has_failed:
                os.ftruncate(self._file, begin)
            self._has_failed = True
            while line:
                written = os.pwrite(self._file, line, at) if self.is_regular else os.write(self._file, line)
                at += written
                line = line[written:]
            if self.is_regular and time.monotonic() - self._synced_at >= self._sync_interval_s:
                os.fdatasync(self._file)
                self._synced_at = time.monotonic()
        self._has_failed = False
        self._end = at
        return begin

    @contextlib.contextmanager
    def _naming(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self.path)) from None


def _open(path: Path, flags: int) -> int:
    """A FIFO must have a reader, who may leave: with a reading end of our own a write could wait for ever."""
    flags |= os.O_CREAT | os.O_CLOEXEC
    if not path.is_fifo():
        return os.open(path, os.O_RDWR | flags, 0o666)
    descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK | flags)
    os.set_blocking(descriptor, True)
    return descriptor
