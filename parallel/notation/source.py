"""Text files as the user names them; `-` is standard input.

A file is read once to know what it is, and again whenever its lines are wanted, one line in memory at a time.
"""

from __future__ import annotations

import codecs
import hashlib
import io
import os
import stat
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from psearch.results import PsearchError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

STANDARD_STREAM = "-"

_BLOCK = 1 << 20
"""bytes"""
_LONGEST_LINE = 1 << 24
"""Bytes: some hundred times the longest game of chess. A line is what must fit in memory."""
_MOST_COPIED = 1 << 32
"""Bytes of a pipe: it can only be read twice from a copy on the disk, and it may never end."""

Parsed = TypeVar("Parsed")


class Line(NamedTuple):
    """A line of a source, with its end."""

    begin: int
    """bytes before it"""
    text: str


class Source:
    """A text that can be read several times, as it was when it was opened.

    descriptor: of a file that can be read at any offset; it is closed with this object. UTF-8, or else Latin-1. Raises
    PsearchError when it is no text, and OSError.
    """

    def __init__(self, name: str, descriptor: int) -> None:
        self._descriptor = descriptor
        weakref.finalize(self, os.close, descriptor)
        self.name = name
        """for messages"""
        examination = _Examination(name)
        while block := os.pread(descriptor, _BLOCK, examination.size):
            examination.take(block)
        self.size = examination.size
        """bytes"""
        self.sha256 = examination.sha256.hexdigest()
        self._encoding = examination.encoding

    @classmethod
    def of_text(cls, name: str, text: str) -> Source:
        """A source that holds this text. Lone surrogates cannot be written, and raise UnicodeEncodeError."""
        with tempfile.TemporaryFile() as file:
            file.write(text.encode())
            file.flush()
            return cls(name, os.dup(file.fileno()))

    def lines(self) -> Iterator[Line]:
        """The lines, ended by line feeds, from the first to the last."""
        offset = 0
        with io.BufferedReader(_Range(self._descriptor, 0, self.size), _BLOCK) as stream:
            for data in stream:
                text = data.decode(self._encoding, "replace")  # the file may be written to behind our back
                yield Line(offset, text if offset else text.removeprefix("\ufeff"))
                offset += len(data)

    def text_between(self, begin: int, end: int) -> str:
        """What stands between two offsets of lines."""
        with _Range(self._descriptor, begin, end) as stream:
            return stream.readall().decode(self._encoding, "replace")


class _Examination:
    """What can be said of a file after its blocks have passed once."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.sha256 = hashlib.sha256()
        self.size = 0
        self.encoding = "utf-8"
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._lines = 0
        self._open = 0
        """bytes of the last line so far"""

    def take(self, block: bytes) -> None:
        """The next block, not longer than a line may be. Raises PsearchError where this cannot be a text."""
        if b"\0" in block:
            raise PsearchError(f"{self.name} is not a text file")
        first = block.find(b"\n")
        if self._open + (len(block) if first < 0 else first) > _LONGEST_LINE:
            raise PsearchError(f"{self.name}, line {self._lines + 1}: longer than {_LONGEST_LINE >> 20} MiB")
        self._open = self._open + len(block) if first < 0 else len(block) - block.rfind(b"\n") - 1
        self._lines += block.count(b"\n")
        self.size += len(block)
        self.sha256.update(block)
        if self.encoding == "utf-8":
            try:
                self._decoder.decode(block)
            except UnicodeDecodeError:
                self.encoding = "latin-1"


class _Range(io.RawIOBase):
    """Part of a file, read without moving the file's own position."""

    def __init__(self, descriptor: int, begin: int, end: int) -> None:
        self._descriptor = descriptor
        self._at = begin
        self._end = end

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer).cast("B")
        data = os.pread(self._descriptor, min(len(view), self._end - self._at), self._at)
        view[: len(data)] = data
        self._at += len(data)
        return len(data)


def read_source(file: str) -> Source:
    """Open a file, `-` for standard input; a pipe is copied. Raises PsearchError when it cannot be read or is no text.

    A FIFO is waited for, as by any program that reads one.
    """
    name = "standard input" if file == STANDARD_STREAM else file
    try:
        return Source(name, _readable_twice(name, _open(file)))
    except (OSError, ValueError) as error:
        raise PsearchError(f"cannot read {name}: {getattr(error, 'strerror', None) or error}") from None


def _open(file: str) -> int:
    if file != STANDARD_STREAM:
        return os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    return os.dup(sys.stdin.fileno()) if sys.stdin is not None else os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)


def _readable_twice(name: str, descriptor: int) -> int:
    """A descriptor of the same contents, from here on, in a regular file; takes the given one over."""
    with open(descriptor, "rb", buffering=0) as stream:
        if stat.S_ISREG(os.fstat(descriptor).st_mode) and os.lseek(descriptor, 0, os.SEEK_CUR) == 0:
            return os.dup(descriptor)
        examination = _Examination(name)  # before the disk is full
        with tempfile.TemporaryFile() as copy:
            while block := stream.read(_BLOCK):
                examination.take(block)
                if examination.size > _MOST_COPIED:
                    raise PsearchError(f"{name} does not end within {_MOST_COPIED >> 30} GiB: give it as a file")
                copy.write(block)
            copy.flush()
            return os.dup(copy.fileno())


def parse_lines(source: Source, parse: Callable[[str, int], Parsed]) -> Iterator[Parsed]:
    """What `parse` makes of each line and its number, from 1; lines that are empty or begin with # are left out.

    Raises PsearchError, naming source and line, for the first that `parse` refuses with a ValueError or PsearchError.
    """
    number = 0
    for whole in source.lines():
        for line in whole.text.splitlines():  # other ends of lines than ours, too
            number += 1
            text = line.strip()
            if text and not text.startswith("#"):
                try:
                    yield parse(text, number)
                except (PsearchError, ValueError) as error:
                    raise PsearchError(f"{source.name}, line {number}: {error}") from None
