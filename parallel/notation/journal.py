"""Append-only files of JSON, one value a line: what a long run has finished, safe from the moment it is finished.

A line is handed to the system before `append` returns, so a kill at any moment loses none, and a power cut no more than
those of the last `sync_interval_s`. A last line cut short by a kill or a full disk is told from the others by having no
end; who goes on with the file drops it.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import math
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

_BLOCK = 1 << 14
"""bytes"""


class Line(NamedTuple):
    """A complete line of a journal."""

    number: int
    """from 1"""
    offset: int
    """bytes before it"""
    value: Any


class DamagedLine(ValueError):
    """A complete line that is not JSON."""

    def __init__(self, number: int) -> None:
        super().__init__(f"line {number} is not JSON")
        self.number = number


class Journal:
    """An open journal, locked against other processes; a context manager.

    fresh: what is in the file goes; otherwise it must be read to its end before anything is appended. sync_interval_s:
    least seconds between two waits for the disk; 0 waits for every line. Raises BlockingIOError when another process
    has the journal open. Every OSError names the file.
    """

    def __init__(self, path: Path, *, fresh: bool = False, sync_interval_s: float = math.inf) -> None:
        self.path = path
        self.torn = b""
        """what follows the last complete line, once all are read"""
        self._end = 0
        self._has_failed = False
        """the last `append`: there may be a piece of its line after `_end`"""
        self._sync_interval_s = sync_interval_s
        self._synced_at = time.monotonic()
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            with self._naming():
                self._is_regular = stat.S_ISREG(os.fstat(self._file).st_mode)
                if self._is_regular:
                    # record locks are not inherited: workers that outlive a killed parent hold none
                    fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    if fresh:
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

    def lines(self) -> Iterator[Line]:
        """The complete lines. Raises DamagedLine."""
        self._end = 0
        self.torn = b""
        # closing any descriptor of the file would give the lock up
        with open(self._file, "rb", closefd=False) as lines:
            lines.seek(0)
            for number, line in enumerate(lines, start=1):
                if not line.endswith(b"\n"):
                    self.torn = line
                    return
                try:
                    value = json.loads(line)
                except ValueError:
                    raise DamagedLine(number) from None
                yield Line(number, self._end, value)
                self._end += len(line)

    def cut(self, offset: int | None = None) -> None:
        """Drop everything from this offset on; without one, the torn line."""
        if offset is not None:
            self._end = offset
        self.torn = b""
        with self._naming():
            os.ftruncate(self._file, self._end)

    def value_at(self, offset: int) -> Any:
        """Of the line there: for who keeps offsets because the values would fill the memory."""
        line = bytearray()
        while b"\n" not in line:
            line += os.pread(self._file, _BLOCK, offset + len(line))
        return json.loads(line.split(b"\n", 1)[0])

    def append(self, value: Any) -> int:
        """Add a line; the offset at which it begins. After an OSError it counts as torn: the next takes its place."""
        line = memoryview(json.dumps(value).encode() + b"\n")
        begin = at = self._end
        with self._naming():
            if self._has_failed:
                os.ftruncate(self._file, begin)
            self._has_failed = True
            while line:
                written = os.pwrite(self._file, line, at) if self._is_regular else os.write(self._file, line)
                at += written
                line = line[written:]
            if self._is_regular and time.monotonic() - self._synced_at >= self._sync_interval_s:
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
