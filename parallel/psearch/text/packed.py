"""Compressed and UTF-16 files, read as UTF-8 text block by block."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import os
from typing import Any, BinaryIO

from psearch.results import PsearchError

_GZIP, _BZIP2, _ZSTD = b"\x1f\x8b", b"BZh", b"\x28\xb5\x2f\xfd"
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_MOST_MAGIC = 4
_BLOCK = 1 << 20
_ZSTD_BLOCK = 1 << 12
"""Bytes that are unpacked at once, at most to 128 MiB."""


def is_packed(begin: bytes) -> bool:
    """Tell whether a file that begins with these bytes is compressed, or in UTF-16."""
    return begin.startswith((_GZIP, _BZIP2, _ZSTD, *_UTF_16))


class _FileAt(io.RawIOBase):
    """A file with a position of its own. descriptor: it can be read at any offset."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor, self._at = descriptor, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]  # any writable buffer
        data = os.pread(self._descriptor, len(buffer), self._at)
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


class _Recoded(io.RawIOBase):
    """A text in UTF-16 as UTF-8."""

    def __init__(self, text: BinaryIO) -> None:
        self._text = text
        self._decoder = codecs.getincrementaldecoder("utf-16")()
        self._ready = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]  # any writable buffer
        block = b"-"
        while not self._ready and block:
            block = self._text.read(_BLOCK)
            self._ready = self._decoder.decode(block, final=not block).encode()
        data, self._ready = self._ready[: len(buffer)], self._ready[len(buffer) :]
        buffer[: len(data)] = data
        return len(data)


def unpacked(name: str, descriptor: int) -> BinaryIO:
    """Return a reader of a file's text from its begin. name: for messages. Raises PsearchError when a package is
    missing, and while reading OSError, EOFError or ValueError for damage."""
    file: Any = _FileAt(descriptor)
    found: Any = io.BufferedReader(file)
    begin = os.pread(descriptor, _MOST_MAGIC, 0)
    if begin.startswith(_GZIP):
        found = gzip.GzipFile(fileobj=found)
    elif begin.startswith(_BZIP2):
        found = bz2.BZ2File(found)
    elif begin == _ZSTD:
        found = _zstd_reader(name, found)
    buffered = io.BufferedReader(found, _BLOCK)
    if buffered.peek(2)[:2] in _UTF_16:
        found = _Recoded(buffered)
        return io.BufferedReader(found, _BLOCK)
    return buffered


def _zstd_reader(name: str, file: BinaryIO) -> io.RawIOBase:
    try:
        import zstandard
    except ImportError:
        text = f"{name} is compressed by zstd: pip install 'psearch-chess[zst]', or unpack it with zstd -d"
        raise PsearchError(text) from None
    return _Zstd(zstandard.ZstdDecompressor(max_window_size=1 << 31), file)


class _Zstd(io.RawIOBase):
    """The text of a file of zstd frames. Damage and a missing end are ValueErrors: zstandard's own reader of streams
    takes the end of the file for that of the last frame.

    decompressor: a `zstandard.ZstdDecompressor`.
    """

    def __init__(self, decompressor: Any, file: BinaryIO) -> None:
        self._begin_frame = decompressor.decompressobj
        self._frame: Any = None
        self._file = file
        self._ready = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]  # any writable buffer
        import zstandard

        try:
            while not self._ready and (data := self._rest() or self._file.read(_ZSTD_BLOCK)):
                self._frame = self._frame or self._begin_frame()
                self._ready = self._frame.decompress(data)
        except zstandard.ZstdError as error:
            raise ValueError(f"damaged: {error}") from None
        if not self._ready and self._frame is not None:
            raise ValueError("damaged: its end is missing")
        data, self._ready = self._ready[: len(buffer)], self._ready[len(buffer) :]
        buffer[: len(data)] = data
        return len(data)

    def _rest(self) -> bytes:
        """End the present frame if it is complete; return what was read beyond it."""
        if self._frame is None or not self._frame.eof:
            return b""
        rest: bytes = self._frame.unused_data
        self._frame = None
        return rest
