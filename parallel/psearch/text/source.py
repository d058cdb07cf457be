"""Text files; the name `-` is standard input.

A file is read once to check it, and again whenever its lines are wanted, with one line in memory at a time. Compressed
text and UTF-16 are unpacked as they are read. A pipe is either copied to a file or read as a `Stream`: each line once,
as it arrives.
"""

from __future__ import annotations

import codecs
import hashlib
import os
import re
import select
import stat
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, TypeVar

from psearch.results import PsearchError
from psearch.text.packed import AT_ONCE, Unpacker, file_blocks, in_blocks, is_packed, unpacked

STANDARD_STREAM = "-"

_BLOCK = 1 << 20
_LONGEST_LINE = 1 << 24
"""Longest line in bytes, since a line must fit in memory: a hundred times the longest game of chess."""
_MOST_COPIED = 1 << 32
"""Most bytes of a pipe that are copied to the disk, since a pipe may never end."""
_LINE_ENDS = re.compile(rb"\n|\r+\n?")
"""Pattern of the end of a line; each carriage return without a line feed is an end."""
_REMARK = re.compile("#")
_ENDS_OF_TEXT = re.compile("\r\n?|[\n\x0b\x0c\x1c-\x1e]")
"""Pattern of the end of a line of positions: any that the text of a JSON object cannot contain."""

Parsed = TypeVar("Parsed")


class TextLine(NamedTuple):
    """A line of a source, including its line feed, with the offsets of its begin and its end in bytes."""

    begin: int
    text: str
    end: int = 0
    encoding: str = "utf-8"

    def offset(self, at: int) -> int:
        """Return the offset in bytes of the character at this index."""
        return self.begin if at == 0 else self.end - len(self.text[at:].encode(self.encoding, "replace"))


class Source:
    """A text that can be read several times, up to the size that it had when it was opened.

    descriptor: a file that can be read at any offset; it is closed with this object. Each line is decoded as UTF-8, or
    else as Latin-1, since files may be joined from others. Raises PsearchError when it is not a text, and OSError.
    """

    def __init__(self, name: str, descriptor: int) -> None:
        self._descriptor = descriptor
        weakref.finalize(self, os.close, descriptor)
        self.name = name
        """Name for messages."""
        self._is_packed = is_packed(os.pread(descriptor, 4, 0))
        self._place: tuple[Iterator[bytes], int, bytes] = iter(()), sys.maxsize, b""
        """Blocks of an unpacked text that `text_between` has not read, and the last bytes before them with their
        offset."""
        self.size = sys.maxsize
        examination = _Examination(name)
        for block in self._blocks():
            examination.take(block)
        self.size = examination.size
        """Size in bytes."""
        self.sha256 = examination.sha256.hexdigest()

    @classmethod
    def of_text(cls, name: str, text: str) -> Source:
        """Return a source with this text. Raises UnicodeEncodeError for lone surrogates."""
        with tempfile.TemporaryFile() as file:
            file.write(text.encode())
            file.flush()
            return cls(name, os.dup(file.fileno()))

    def lines(self) -> Iterator[TextLine]:
        """Yield all lines; line feeds, carriage returns or both end a line."""
        offset = 0
        for data in self._encoded_lines():
            text, encoding = (data.decode(), "utf-8") if data.isascii() else _decoded(data)
            end = offset + len(data)
            yield TextLine(offset, text if offset else text.removeprefix("\ufeff"), end, encoding)
            offset = end

    def _blocks(self) -> Iterator[bytes]:
        """Yield the text in blocks, up to its size."""
        at = 0
        with _readable(self.name):
            for block in (
                unpacked(self.name, self._descriptor) if self._is_packed else file_blocks(self._descriptor, _BLOCK)
            ):
                if not (known := block[: self.size - at]):
                    return
                at += len(known)
                yield known

    def _between(self, begin: int, end: int) -> bytes:
        if not self._is_packed:
            return os.pread(self._descriptor, end - begin, begin)
        blocks, at, data = self._place
        if at > begin:
            blocks, at, data = unpacked(self.name, self._descriptor), 0, b""
        while at + len(data) < end and (block := next(blocks, b"")):
            skipped = min(begin - at, len(data))
            at, data = at + skipped, data[skipped:] + block
        self._place = blocks, at, data
        return data[begin - at : end - at]

    def _encoded_lines(self) -> Iterator[bytes]:
        at, rest = 0, b""
        for block in self._blocks():
            at += len(block)
            data, begin = rest + block, 0
            stop = len(data.rstrip(b"\r")) if at < self.size else len(data)  # a line feed may follow
            for found in _LINE_ENDS.finditer(data, len(rest.rstrip(b"\r")), stop):
                for end in range(found.end() if found[0][-1:] == b"\n" else found.start() + 1, found.end() + 1):
                    yield data[begin:end]
                    begin = end
            rest = data[begin:]
        if rest:
            yield rest

    def text_between(self, begin: int, end: int) -> str:
        """Return the text between the offsets of two lines."""
        data = self._between(begin, min(end, self.size))
        return "".join(_decoded(line)[0] for line in data.splitlines(True))


def _decoded(data: bytes | bytearray) -> tuple[str, str]:
    try:
        return data.decode("utf-8"), "utf-8"
    except UnicodeDecodeError:
        bom = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
        return bom.decode("utf-8") + data[len(bom) :].decode("latin-1"), "latin-1"


class _Examination:
    """Checks the blocks of a file one by one, and keeps its size and its digest."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.sha256 = hashlib.sha256()
        self.size = 0
        self._lines = 0
        self._open = 0
        """Bytes of the unfinished last line."""

    def take(self, block: bytes) -> None:
        """Check the next block, which is at most as long as a line may be. Raises PsearchError if it is not a text."""
        if b"\0" in block:
            raise PsearchError(f"{self.name} is not a text file")
        ends = [end for end in (b"\n", b"\r") if end in block]
        if self._open + min(map(block.find, ends), default=len(block)) > _LONGEST_LINE:
            raise PsearchError(f"{self.name}, line {self._lines + 1}: longer than {_LONGEST_LINE >> 20} MiB")
        last = max(map(block.rfind, ends), default=-1)
        self._open = len(block) - last - 1 + (0 if ends else self._open)
        self._lines += block.count(ends[0]) if ends else 0
        self.size += len(block)
        self.sha256.update(block)


class Stream:
    """The lines of a pipe, each once, as they arrive.

    descriptor: the pipe; it is closed with this object. Each line is decoded as UTF-8, or else as Latin-1. Methods that
    read raise PsearchError when the pipe cannot be read or its content is not a text.
    """

    def __init__(self, name: str, descriptor: int) -> None:
        self._descriptor = descriptor
        weakref.finalize(self, os.close, descriptor)
        self.name = name
        """Name for messages."""
        self._examination = _Examination(name)
        self._unpacker = Unpacker(name)
        self._read_bytes = bytearray()
        """Bytes of the pipe that were read, for `copied`."""
        self._waiting = bytearray()
        """Text that has been read and not returned."""
        self._is_first = True
        self._is_at_end = False

    def fileno(self) -> int:
        return self._descriptor

    def first_lines(self) -> Iterator[str]:
        """Yield the first lines, waiting for each. `lines` or `copied` returns them again."""
        begin = 0
        while not self._is_at_end or begin < len(self._waiting):
            end = self._waiting.find(b"\n", begin) + 1
            if end or self._is_at_end:
                end = end or len(self._waiting)
                yield self._text(self._waiting[begin:end])
                begin = end
            else:
                self._read()

    def lines(self) -> Iterator[str | None]:
        """Yield the lines, which end with line feeds; None while the next line has not arrived."""
        while True:
            self._read_bytes.clear()
            *whole, rest = bytes(self._waiting).split(b"\n")
            self._waiting = bytearray(rest)
            for line in whole:
                yield self._text(line) + "\n"
                self._is_first = False
            if self._is_at_end:
                if rest:
                    yield self._text(rest)
                return
            while not self._is_at_end:
                poll = select.poll()
                poll.register(self._descriptor, select.POLLIN)
                if not poll.poll(0):
                    yield None
                elif b"\n" in self._read():
                    break

    def copied(self) -> Source:
        """Copy the whole pipe, as it is packed, and return the copy, instead of `lines`."""
        with _readable(self.name), tempfile.TemporaryFile() as copy:
            while copy.write(self._read_bytes) or not self._is_at_end:
                if copy.tell() > _MOST_COPIED:
                    raise PsearchError(f"{self.name} does not end within {_MOST_COPIED >> 30} GiB: give it as a file")
                self._read_bytes.clear()
                self._waiting.clear()
                if not self._is_at_end:
                    self._read()  # also checks the text
            copy.flush()
            return Source(self.name, os.dup(copy.fileno()))

    def _read(self) -> bytes:
        """Wait for the next bytes and return the text that they add, which may be none."""
        with _readable(self.name):
            block = os.read(self._descriptor, AT_ONCE)
            text = self._unpacker.take(block, is_last=not block)
        for part in in_blocks(text):
            self._examination.take(part)
        self._read_bytes += block
        self._waiting += text
        self._is_at_end = not block
        return text

    def _text(self, line: bytes | bytearray) -> str:
        return _decoded(line)[0].removeprefix("\ufeff" if self._is_first else "")


@contextmanager
def _readable(name: str) -> Iterator[None]:
    try:
        yield
    except UnicodeError:
        raise PsearchError(f"{name} is not a text file") from None
    except (OSError, ValueError) as error:
        raise PsearchError(f"cannot read {name}: {getattr(error, 'strerror', None) or error}") from None


def read_source(file: str) -> Source:
    """Open a file, `-` for standard input; a pipe is copied. Waits for the writer of a FIFO. Raises PsearchError when
    the file cannot be read or is not a text."""
    found = open_source(file)
    return found.copied() if isinstance(found, Stream) else found


def open_source(file: str) -> Source | Stream:
    """Open a file as a `Source`, or anything else that can be read only once as a `Stream`."""
    name = "standard input" if file == STANDARD_STREAM else file
    with _readable(name):
        if file == STANDARD_STREAM and sys.stdin is not None:
            descriptor = os.dup(sys.stdin.fileno())
        else:
            descriptor = os.open(os.devnull if file == STANDARD_STREAM else file, os.O_RDONLY | os.O_CLOEXEC)
        try:
            is_file = stat.S_ISREG(os.fstat(descriptor).st_mode) and os.lseek(descriptor, 0, os.SEEK_CUR) == 0
        except BaseException:
            os.close(descriptor)
            raise
        if is_file:
            return Source(name, descriptor)
        return Stream(name, descriptor)


def parse_lines(
    source: Source,
    parse: Callable[[str, int], Parsed],
    remark: re.Pattern[str] = _REMARK,
    refuse: Callable[[str], None] | None = None,
) -> Iterator[Parsed]:
    """Yield the result of `parse` for each line and its number, from 1, except empty lines and remarks.

    If `parse` raises ValueError or PsearchError, the line is left out and `refuse` is called with a message that names
    the source and the line. Without `refuse` this raises PsearchError.
    """
    found = _parsed(source.name, (line.text for line in source.lines()), parse, remark, refuse)
    return (one for one in found if one is not None)


def parse_stream(stream: Stream, parse: Callable[[str, int], Parsed]) -> Iterator[Parsed | None]:
    """Parse the lines of a pipe as they arrive; None while the next line has not arrived."""
    return _parsed(stream.name, stream.lines(), parse, _REMARK, None)


def _parsed(
    name: str,
    lines: Iterable[str | None],
    parse: Callable[[str, int], Parsed],
    remark: re.Pattern[str],
    refuse: Callable[[str], None] | None,
) -> Iterator[Parsed | None]:
    number = 0
    for whole in lines:
        if whole is None:
            yield None
            continue
        for line in _ENDS_OF_TEXT.split(whole.removesuffix("\n").removesuffix("\r")):
            number += 1
            text = line.strip()
            if text and not remark.match(text):
                try:
                    yield parse(text, number)
                except (PsearchError, ValueError) as error:
                    problem = f"{name}, line {number}: {error}"
                    if refuse is None:
                        raise PsearchError(problem) from None
                    refuse(problem)
