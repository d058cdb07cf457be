"""Files that outlive a kill: replaced as a whole (`AtomicFile`), or added to line by line (`Journal`); and their JSON.

A line of a journal is handed to the system before `append` returns, so a kill at any moment loses none, and a power cut
no more than those of the last `sync_interval_s`. A last line cut short by a kill or a full disk is told from the others
by having no end; whoever goes on with the file drops it. Nothing else is ever dropped: a file that does not begin like
ours, or is damaged further up, is refused and stays as it is.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import math
import os
import shutil
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

_BLOCK = 1 << 14
_LONGEST_LINE = 1 << 26
"""Bytes; a thousand times what any journal of ours holds."""
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)
"""What file systems say that cannot lock, such as NFS without its lock daemon."""


def json_value(text: str | bytes | bytearray, parse_constant: Callable[[str], Any] | None = None) -> Any:
    """Return the value of a JSON text of a user's file or another program. parse_constant: as `json.loads` has it.
    Raises ValueError, also for lists inside lists without end, which `json.loads` answers with RecursionError."""
    try:
        return json.loads(text, parse_constant=parse_constant)
    except RecursionError:
        raise ValueError("lists or objects are nested too deeply") from None


def json_object(text: str) -> dict[str, Any]:
    """Return the values of a JSON object by name. Raises ValueError for any other text."""
    with contextlib.suppress(ValueError):
        values = json_value(text)
        if isinstance(values, dict):
            return values
    raise ValueError("not a JSON object")


@contextlib.contextmanager
def _naming(path: Path | None) -> Iterator[None]:
    """Have an OSError name the file."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None


class AtomicFile:
    """A text file that is written beside its place and moved there by `commit`: readers see the old one or the new one,
    at any moment. A context manager.

    place: where it goes, not a link; part: where it is written, in the same folder. Without `commit` the part is
    deleted at the end and what is in the place stays. What an earlier run left in the place of the part goes; where
    somebody put a link there, the link. An OSError names the part.
    """

    def __init__(self, place: Path, part: Path) -> None:
        self._place = place
        self._part: Path | None = part
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            descriptor = os.open(part, flags, 0o666)
        except FileExistsError:
            part.unlink()
            descriptor = os.open(part, flags, 0o666)
        self.stream = open(descriptor, "w", encoding="utf-8", newline="\n")  # noqa: SIM115

    def __enter__(self) -> AtomicFile:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._part is not None:
            # a full disk has been reported when it was written
            with contextlib.suppress(OSError):
                self.stream.close()
            self._part.unlink(missing_ok=True)

    def write(self, text: str) -> None:
        """Add to the file."""
        with _naming(self._part):
            self.stream.write(text)

    def commit(self) -> None:
        """Move the complete file to its place, safe on the disk, with the permissions of the old one."""
        assert self._part is not None
        with _naming(self._part):
            self.stream.flush()
            os.fsync(self.stream.fileno())
            self.stream.close()
            if self._place.exists():
                shutil.copymode(self._place, self._part)
            os.replace(self._part, self._place)
        self._part = None


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
    """An open file of JSON, one value a line, locked against other processes where the file system can; a context
    manager.

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
        flags |= os.O_CREAT | os.O_CLOEXEC
        # a FIFO must have a reader, who may leave: with a reading end of our own a write could wait for ever
        is_fifo = path.is_fifo()
        self._file = os.open(path, flags | (os.O_WRONLY | os.O_NONBLOCK if is_fifo else os.O_RDWR), 0o666)
        try:
            with _naming(path):
                if is_fifo:
                    os.set_blocking(self._file, True)
                self.is_regular = stat.S_ISREG(os.fstat(self._file).st_mode)
                if self.is_regular:
                    try:
                        # record locks are not inherited: workers that outlive a killed parent hold none
                        fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    except OSError as error:
                        if error.errno == errno.EACCES:  # POSIX leaves the choice
                            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN)) from None
                        if error.errno not in _NO_LOCKS:
                            raise
                    if fresh:
                        head = os.pread(self._file, len(opening), 0)
                        if head[: len(opening)] != opening[: len(head)]:
                            raise DamagedLine(path, 1)
                        os.ftruncate(self._file, 0)
        except BaseException:
            self.close()
            raise

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

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Give up the lock."""
        os.close(self._file)

    def lines(self) -> Iterator[JournalLine]:
        """Yield the complete lines. Raises DamagedLine."""
        self._end, self.torn = 0, b""
        # closing any descriptor of the file would give the lock up
        with open(self._file, "rb", closefd=False) as lines:
            lines.seek(0)
            for number, line in enumerate(iter(lambda: lines.readline(_LONGEST_LINE), b""), start=1):
                is_complete = line.endswith(b"\n")
                opening = self._opening if number == 1 else self._opening[:1]
                # of a torn line the system may have kept zeros in place of what was written last
                written = line if is_complete else line.rstrip(b"\0")
                is_ours = written[: len(opening)] == (opening if is_complete else opening[: len(written)])
                if not is_ours or (not is_complete and len(line) == _LONGEST_LINE):
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

    def cut(self, offset: int | None = None) -> None:
        """Drop everything from this offset on; without one, the torn line."""
        self._end = self._end if offset is None else offset
        self.torn = b""
        with _naming(self.path):
            os.ftruncate(self._file, self._end)

    def value_at(self, offset: int) -> Any:
        """Return the value of the line there: for callers who keep offsets because the values would fill the memory.

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
        with _naming(self.path):
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
