"""Files that survive a kill: replaced as a whole (`AtomicFile`), or extended line by line (`Journal`); and their JSON.

`append` passes a line of a journal to the system before it returns. So a kill loses no line, and a power cut only those
of the last `sync_interval_s`. A last line that a kill or a full disk has cut short has no line feed, and is dropped
when the file is continued. Nothing else is ever dropped: a file that begins otherwise, or is damaged elsewhere, is
refused and not changed.
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

from psearch.closing import Closing

_BLOCK = 1 << 14
_LONGEST_LINE = 1 << 26
"""Longest line in bytes: a thousand times the longest in any journal of psearch."""
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)
"""Errors of file systems without locks, such as NFS without its lock daemon."""


def json_value(text: str | bytes | bytearray, parse_constant: Callable[[str], Any] | None = None) -> Any:
    """Return the value of a JSON text from a user or another program. parse_constant: see `json.loads`. Raises
    ValueError, also for the deeply nested lists for which `json.loads` raises RecursionError."""
    try:
        return json.loads(text, parse_constant=parse_constant)
    except RecursionError:
        raise ValueError("lists or objects are nested too deeply") from None


def json_object(text: str) -> dict[str, Any]:
    """Return the values of a JSON object, by name. Raises ValueError for any other text."""
    with contextlib.suppress(ValueError):
        values = json_value(text)
        if isinstance(values, dict):
            return values
    raise ValueError("not a JSON object")


def unwritable(path: Path) -> str:
    """Return why a file cannot be written at a path, behind a link if there is one; empty if it can."""
    target = Path(os.path.realpath(path))
    if target.is_dir():
        return "it is a folder"
    if not target.parent.is_dir():
        return f"there is no folder {target.parent}"
    return "" if os.access(target if target.exists() else target.parent, os.W_OK) else "permission denied"


@contextlib.contextmanager
def _naming(path: Path | None) -> Iterator[None]:
    """Add the name of the file to an OSError."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None


class AtomicFile(Closing):
    """A text file that is written under another name and moved to its place by `commit`, so that readers always see
    either the old or the new file. A context manager.

    place: final path, not a link; part: temporary path in the same folder. Without `commit` the temporary file is
    deleted at the end and the final one stays unchanged. A temporary file of an earlier run is deleted; so is a link of
    that name, but not its target. An OSError names the temporary file.
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

    def close(self) -> None:
        """Delete the temporary file, unless it has been moved to its place."""
        if self._part is not None:
            # `write` has already reported a full disk
            with contextlib.suppress(OSError):
                self.stream.close()
            self._part.unlink(missing_ok=True)

    def write(self, text: str) -> None:
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
    """Number of the line, from 1."""
    offset: int
    """Offset of the line in bytes."""
    value: Any


class DamagedLine(ValueError):
    """A line that is not of this journal: complete but not JSON, too long, or with the wrong beginning."""

    def __init__(self, path: Path, number: int) -> None:
        super().__init__(f"{path}: line {number} is not JSON of this kind")
        self.number = number


class Journal(Closing):
    """An open file of JSON, one value per line; a context manager. It is locked against other processes if the file
    system has locks.

    opening: beginning of the first line, if all lines are objects; fresh: the first `append` empties the file;
    otherwise it must be read to its end before anything is appended. sync_interval_s: least seconds between two
    waits for the disk; 0 waits for every line. flags: additional flags for `os.open`. Raises BlockingIOError when
    another process has the journal open, DamagedLine when that would empty another kind of file. Every OSError
    names the file.
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
        """Bytes after the last complete line, once all lines have been read."""
        self._end = 0
        self._has_rest = fresh
        """True if bytes may follow `_end`: the former content, or a part of a line that could not be written."""
        self._sync_interval_s = sync_interval_s
        self._synced_at = time.monotonic()
        flags |= os.O_CREAT | os.O_CLOEXEC
        # a FIFO is opened for writing only: with a reading end of our own, a write without a reader could block forever
        is_fifo = path.is_fifo()
        self._file = os.open(path, flags | (os.O_WRONLY | os.O_NONBLOCK if is_fifo else os.O_RDWR), 0o666)
        try:
            with _naming(path):
                if is_fifo:
                    os.set_blocking(self._file, True)
                self.is_regular = stat.S_ISREG(os.fstat(self._file).st_mode)
                if self.is_regular:
                    try:
                        # record locks are not inherited: workers that survive a killed parent hold none
                        fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    except OSError as error:
                        if error.errno == errno.EACCES:  # POSIX allows either error
                            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN)) from None
                        if error.errno not in _NO_LOCKS:
                            raise
                    if fresh:
                        head = os.pread(self._file, len(opening), 0)
                        if head[: len(opening)] != opening[: len(head)]:
                            raise DamagedLine(path, 1)
        except BaseException:
            self.close()
            raise

    @classmethod
    def at_end(cls, path: Path, opening: bytes) -> Journal:
        """Open a journal to append lines, whatever it holds; a torn line is dropped. Raises DamagedLine, too."""
        journal = cls(path, opening)
        try:
            for _ in journal.lines():
                pass
            journal.cut()
        except BaseException:
            journal.close()
            raise
        return journal

    def close(self) -> None:
        """Close the file, which releases the lock."""
        os.close(self._file)

    def lines(self) -> Iterator[JournalLine]:
        """Yield the complete lines. Raises DamagedLine."""
        self._end, self.torn = 0, b""
        # closing any descriptor of the file would release the lock
        with open(self._file, "rb", closefd=False) as lines:
            lines.seek(0)
            for number, line in enumerate(iter(lambda: lines.readline(_LONGEST_LINE), b""), start=1):
                is_complete = line.endswith(b"\n")
                opening = self._opening if number == 1 else self._opening[:1]
                # the end of a torn line may be zeros instead of the written bytes
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
        """Cut the file at an offset; None: drop the torn line."""
        self._end = self._end if offset is None else offset
        self.torn = b""
        with _naming(self.path):
            os.ftruncate(self._file, self._end)

    def value_at(self, offset: int) -> Any:
        """Return the value of the line at an offset. Raises ValueError when there is no such line because another
        program has changed the file."""
        line = bytearray()
        while b"\n" not in line and len(line) < _LONGEST_LINE:
            block = os.pread(self._file, _BLOCK, offset + len(line))
            if not block:
                raise ValueError(f"no line begins at {offset}")
            line += block
        return json_value(line.split(b"\n", 1)[0])

    def append(self, value: Any) -> int:
        """Append a line and return its offset. After an OSError the line counts as torn, and the next one overwrites
        it."""
        line = memoryview(json.dumps(value).encode() + b"\n")
        begin = at = self._end
        with _naming(self.path):
            if self._has_rest and self.is_regular:
                os.ftruncate(self._file, begin)
            self._has_rest = True
            while line:
                written = os.pwrite(self._file, line, at) if self.is_regular else os.write(self._file, line)
                at += written
                line = line[written:]
            if self.is_regular and time.monotonic() - self._synced_at >= self._sync_interval_s:
                os.fdatasync(self._file)
                self._synced_at = time.monotonic()
        self._has_rest = False
        self._end = at
        return begin
