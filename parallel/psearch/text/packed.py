"""Compressed text and UTF-16, turned into UTF-8 as its bytes come."""

from __future__ import annotations

import bz2
import codecs
import os
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from psearch.results import PsearchError

AT_ONCE = 1 << 12
"""Most bytes to be unpacked at once: zstd makes up to 128 MiB of them."""
_BLOCK = 1 << 20
_GZIP, _BZIP2, _ZSTD = b"\x1f\x8b", b"BZh", b"\x28\xb5\x2f\xfd"
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_GZIP_BITS = 31

_Convert: TypeAlias = Callable[[bytes, bool], bytes]
"""Converts the next bytes; the flag is True for the last ones."""


def is_packed(begin: bytes) -> bool:
    """Tell whether a file that begins with these bytes is compressed, or in UTF-16."""
    return begin.startswith((_GZIP, _BZIP2, _ZSTD, *_UTF_16))


class Unpacker:
    """Turns the bytes of a file or a pipe into UTF-8 text: unpacks gzip, bzip2 and zstd, then recodes UTF-16. All else
    is passed on. name: for messages."""

    def __init__(self, name: str) -> None:
        self._unpack = _Stage(
            {
                _GZIP: lambda: _Frames(lambda: zlib.decompressobj(_GZIP_BITS), zlib.error),
                _BZIP2: lambda: _Frames(bz2.BZ2Decompressor, OSError),
                _ZSTD: lambda: _zstd_frames(name),
            }
        )
        self._recode = _Stage(dict.fromkeys(_UTF_16, _recoder))

    def take(self, data: bytes, is_last: bool = False) -> bytes:
        """Return the text that these bytes add, at most `AT_ONCE`; is_last: no more follow. Raises PsearchError when a
        package is missing, ValueError for damage."""
        return self._recode(self._unpack(data, is_last), is_last)


def file_blocks(descriptor: int, size: int) -> Iterator[bytes]:
    """Yield the bytes of a file in blocks of at most this size, whatever its offset."""
    at = 0
    while block := os.pread(descriptor, size, at):
        at += len(block)
        yield block


def unpacked(name: str, descriptor: int) -> Iterator[bytes]:
    """Yield the text of a file in blocks of at most 1 MiB. Raises what `Unpacker.take` does, and OSError."""
    unpacker = Unpacker(name)
    for block in file_blocks(descriptor, AT_ONCE):
        yield from in_blocks(unpacker.take(block))
    yield from in_blocks(unpacker.take(b"", is_last=True))


def in_blocks(data: bytes) -> Iterator[bytes]:
    """Yield bytes in blocks of at most 1 MiB."""
    return (data[begin : begin + _BLOCK] for begin in range(0, len(data), _BLOCK))


class _Stage:
    """Converts bytes if they begin with one of the given ones, else passes them on."""

    def __init__(self, makers: Mapping[bytes, Callable[[], _Convert]]) -> None:
        self._makers = makers
        self._begin = b""
        """Bytes that do not yet show what they are."""
        self._convert: _Convert | None = None

    def __call__(self, data: bytes, is_last: bool) -> bytes:
        if self._convert is None:
            self._begin += data
            if not is_last and any(mark != self._begin and mark.startswith(self._begin) for mark in self._makers):
                return b""
            data = self._begin
            make = next((make for mark, make in self._makers.items() if data.startswith(mark)), None)
            self._convert = (lambda data, is_last: data) if make is None else make()
        return self._convert(data, is_last)


class _Frames:
    """Unpacks frames, one after the other. begin: makes the decompressor of a frame; damage: its error."""

    def __init__(self, begin: Callable[[], Any], damage: type[Exception]) -> None:
        self._begin, self._damage = begin, damage
        self._frame: Any = None

    def __call__(self, data: bytes, is_last: bool) -> bytes:
        texts = []
        try:
            while data:
                self._frame = self._frame or self._begin()
                texts.append(self._frame.decompress(data))
                data = b""
                if self._frame.eof:
                    data = self._frame.unused_data.lstrip(b"\0")  # some programs fill the last block with zeros
                    self._frame = None
        except self._damage as error:
            raise ValueError(f"damaged: {error}") from None
        if is_last and self._frame is not None:
            raise ValueError("damaged: its end is missing")
        return b"".join(texts)


def _zstd_frames(name: str) -> _Frames:
    try:
        import zstandard
    except ImportError:
        text = f"{name} is compressed by zstd: pip install 'psearch-chess[zst]', or unpack it with zstd -d"
        raise PsearchError(text) from None
    return _Frames(zstandard.ZstdDecompressor(max_window_size=1 << 31).decompressobj, zstandard.ZstdError)


def _recoder() -> _Convert:
    decoder = codecs.getincrementaldecoder("utf-16")()
    return lambda data, is_last: decoder.decode(data, is_last).encode()
