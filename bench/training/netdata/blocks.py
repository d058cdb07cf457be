"""Files of games: blocks, each packed and checksummed by itself, one behind the other.

A block is 16 bytes (the mark, then the lengths of header and body and the CRC-32 of both, little-endian), a header in
JSON, and a body packed by LZMA. The header says how the games were played, and how many games and plies there are. The
body is, one array behind the other:

- the start of each game as FEN, one a line, empty for the start position;
- one byte a game, its result (2 White won, 1 drawn, 0 Black won); one byte, how it ended; two bytes, how many plies;
  two bytes, how many of these are the opening's and have no score;
- one byte a ply: the rank of its move (`kernels.py`);
- one byte a searched ply: what its score, in White's view, adds to the one before it, zigzag; 255 when it takes more,
  and then four bytes at the end of the body.

A ply takes 1.5 bytes. What is torn at the end of a file, by a program that was killed or a disk that was full, is not a
block; what comes before it is whole. Whoever goes on with the file cuts off such an end, and nothing else: a block that
is damaged, and a file that holds something else, are refused.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import lzma
import os
import struct
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeVar

import numpy as np

from psearch.files.safe_files import json_value

T = TypeVar("T")

_MARK = b"psg1"
_HEAD = struct.Struct("<4sIII")
_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 9, "lc": 0, "lp": 0, "pb": 0}]
_MOST_BYTES = 1 << 27
"""Most bytes of a header or a body: no block has more."""
_MOST_UNPACKED = 1 << 29
_ESCAPE = 255
_GAME_BYTES = 6
"""Bytes of each game in a body, beside its start, moves and scores."""


class Torn(ValueError):
    """The bytes read are not a whole block."""


class Game(NamedTuple):
    fen: str
    """FEN of the start; empty: the start position."""
    opening: int
    """Plies without a score."""
    ranks: np.ndarray
    """Ranks of the moves, uint8, one a ply."""
    scores: np.ndarray
    """Scores, int16, one a searched ply, from White's view."""
    result: int
    ending: int

    @classmethod
    def of_record(cls, fen: str, record: np.void) -> Game:
        """Take a game out of a `game_dtype` record."""
        count, opening = int(record["count"]), int(record["opening"])
        ranks, scores = record["ranks"][:count].copy(), record["scores"][opening:count].copy()
        return cls(fen, opening, ranks, scores, int(record["result"]), int(record["ending"]))


class Block(NamedTuple):
    """Games that were played with the same settings."""

    header: dict[str, Any]
    games: list[Game]

    @property
    def searched(self) -> int:
        return sum(len(game.scores) for game in self.games)


def _pack_scores(scores: np.ndarray) -> tuple[bytes, bytes]:
    steps = np.diff(scores.astype(np.int32), prepend=0)
    folded = (steps << 1) ^ (steps >> 31)
    large = folded >= _ESCAPE
    return np.where(large, _ESCAPE, folded).astype(np.uint8).tobytes(), folded[large].astype("<u4").tobytes()


def _unpack_scores(small: np.ndarray, large: np.ndarray) -> np.ndarray:
    folded = small.astype(np.int64)
    escaped = small == _ESCAPE
    if int(escaped.sum()) != len(large):
        raise Torn("its scores do not add up")
    folded[escaped] = large
    return np.cumsum((folded >> 1) ^ -(folded & 1)).astype(np.int16)


def pack(block: Block) -> bytes:
    games = block.games
    lines = "".join(f"{game.fen}\n" for game in games).encode("ascii")
    small, large = _pack_scores(np.concatenate([np.zeros(0, np.int16), *(game.scores for game in games)]))
    body = b"".join(
        [
            lines,
            np.array([game.result for game in games], np.uint8).tobytes(),
            np.array([game.ending for game in games], np.uint8).tobytes(),
            np.array([len(game.ranks) for game in games], "<u2").tobytes(),
            np.array([game.opening for game in games], "<u2").tobytes(),
            b"".join(game.ranks.tobytes() for game in games),
            small,
            large,
        ]
    )
    counts = {"count": len(games), "plies": sum(len(game.ranks) for game in games), "searched": len(small)}
    header = json.dumps({**block.header, **counts, "lines": len(lines)}).encode()
    packed = lzma.compress(body, lzma.FORMAT_RAW, filters=_FILTERS)
    return _HEAD.pack(_MARK, len(header), len(packed), zlib.crc32(header + packed)) + header + packed


def _unpack(header: dict[str, Any], body: bytes) -> Block:
    at = 0

    def take(count: int, kind: str) -> np.ndarray:
        nonlocal at
        array = np.frombuffer(body, kind, count, at)
        at += array.nbytes
        return array

    count, plies = header["count"], header["plies"]
    fens = take(header["lines"], "u1").tobytes().decode("ascii").split("\n")[:-1]
    results, endings = take(count, "u1"), take(count, "u1")
    lengths, openings = take(count, "<u2").astype(int), take(count, "<u2").astype(int)
    ranks = take(plies, "u1")
    scores = _unpack_scores(take(header["searched"], "u1"), np.frombuffer(body, "<u4", offset=at))
    if len(fens) != count or lengths.sum() != plies or (lengths - openings).sum() != len(scores) or plies < 0:
        raise Torn("its counts do not add up")
    rank_at = np.concatenate(([0], np.cumsum(lengths)))
    score_at = np.concatenate(([0], np.cumsum(lengths - openings)))
    games = [
        Game(
            fens[i],
            int(openings[i]),
            ranks[rank_at[i] : rank_at[i + 1]],
            scores[score_at[i] : score_at[i + 1]],
            int(results[i]),
            int(endings[i]),
        )
        for i in range(count)
    ]
    return Block({name: header[name] for name in header if name not in ("count", "plies", "searched", "lines")}, games)


class Packed(NamedTuple):
    """A block as it stands in a file."""

    header: dict[str, Any]
    body: bytes
    text: bytes
    """The whole text."""


def _next_packed(file: IO[bytes]) -> Packed | None:
    """The block that begins here; None at the end of the file. Raises Torn."""
    head = file.read(_HEAD.size)
    if not head:
        return None
    if len(head) < _HEAD.size:
        raise Torn("it ends inside a block")
    mark, header_bytes, body_bytes, checksum = _HEAD.unpack(head)
    if mark != _MARK or max(header_bytes, body_bytes) > _MOST_BYTES:
        raise Torn("no block begins here")
    text = file.read(header_bytes + body_bytes)
    if len(text) < header_bytes + body_bytes:
        raise Torn("it ends inside a block")
    if zlib.crc32(text) != checksum:
        raise Torn("a block's checksum is wrong")
    return Packed(json_value(text[:header_bytes]), text[header_bytes:], head + text)


def unpacked(packed: Packed) -> Block:
    body = lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=_FILTERS).decompress(packed.body, _MOST_UNPACKED)
    return _unpack(packed.header, body)


def _each(path: Path, take: Callable[[Packed], T]) -> Iterator[T]:
    """Yield `take` of each block of a file. Raises OSError, and Torn, which names file and place."""
    with path.open("rb") as file:
        while True:
            begin = file.tell()
            try:
                packed = _next_packed(file)
                if packed is None:
                    return
                taken = take(packed)
            except (Torn, lzma.LZMAError, ValueError, KeyError, TypeError, OverflowError) as error:
                raise Torn(f"{path}, byte {begin}: {error}") from None
            yield taken


def read_blocks(path: Path) -> Iterator[Block]:
    """Yield the blocks of a file. Raises OSError, and Torn, which names file and place, behind the last whole block."""
    return _each(path, unpacked)


def read_packed(path: Path) -> Iterator[Packed]:
    """Yield the blocks of a file as they stand there. Raises as `read_blocks`."""
    return _each(path, lambda packed: packed)


def read_headers(path: Path) -> tuple[list[dict[str, Any]], int]:
    """Return the headers of a file's whole blocks, with their counts, and the bytes that these take. Raises OSError."""
    headers: list[dict[str, Any]] = []
    end = 0
    with contextlib.suppress(Torn):
        for packed in read_packed(path):
            headers.append(packed.header)
            end += len(packed.text)
    return headers, end


def _is_torn(tail: bytes) -> bool:
    """Tell whether what follows the whole blocks of a file is surely a block that was being written.

    It begins like one, ends before its head says so and before its body does, and no other block follows. Zeros are
    what a file system keeps in place of bytes that had not reached the disk.
    """
    written = tail.rstrip(b"\0")
    if len(written) < _HEAD.size:
        return written[: len(_MARK)] == _MARK[: len(written)]
    mark, header_bytes, body_bytes, _ = _HEAD.unpack_from(tail)
    if mark != _MARK or max(header_bytes, body_bytes) > _MOST_BYTES:
        return False
    if len(tail) >= _HEAD.size + header_bytes + body_bytes or _has_head(tail, 1):
        return False
    try:
        header, header_bytes = json.JSONDecoder().raw_decode(tail[_HEAD.size :].decode("latin-1"))
        least = header["lines"] + header["plies"] + header["searched"] + _GAME_BYTES * header["count"]
    except ValueError:  # it ends inside its header
        return True
    except (KeyError, TypeError, RecursionError):
        return False
    decompressor = lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=_FILTERS)
    try:
        body = decompressor.decompress(tail[_HEAD.size + header_bytes :], _MOST_UNPACKED)
    except lzma.LZMAError:
        return True
    return not decompressor.eof or len(body) < least


def _has_head(text: bytes, begin: int) -> bool:
    """Tell whether a block begins somewhere from this byte on, whole or not."""
    while (begin := text.find(_MARK, begin)) >= 0:
        if len(text) - begin >= _HEAD.size:
            _, header_bytes, body_bytes, _ = _HEAD.unpack_from(text, begin)
            if max(header_bytes, body_bytes) <= _MOST_BYTES and text[begin + _HEAD.size :].startswith(b"{"):
                return True
        begin += 1
    return False


class Appender:
    """A file of games that grows by whole blocks; nobody else appends to it meanwhile.

    check: called with the header of each block, before anything is cut off. Raises OSError (BlockingIOError: another
    program has the file), and Torn where there is more than whole blocks and a torn one at their end: the file stays.
    """

    def __init__(self, path: Path, check: Callable[[dict[str, Any]], None] = lambda header: None) -> None:
        self._file = path.open("ab")
        try:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise BlockingIOError(f"{path} is being written by another program") from None
            self.headers, end = read_headers(path)
            for header in self.headers:
                check(header)
            with path.open("rb") as file:
                file.seek(end)
                tail = file.read()
            if tail and not _is_torn(tail):
                raise Torn(f"{path}, byte {end:,}: more follows than a block that was cut short")
        except BaseException:
            self._file.close()
            raise
        self.cut = len(tail)
        """Bytes of a torn block that were cut off."""
        if self.cut:
            self._file.truncate(end)

    def append(self, block: Block) -> int:
        """Add a block, on the disk when this returns; returns its bytes."""
        text = pack(block)
        end = os.fstat(self._file.fileno()).st_size
        try:
            self._file.write(text)
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError:
            # a full disk: what is there of it would stand in the way of the next
            self._file.truncate(end)
            raise
        return len(text)

    def close(self) -> None:
        self._file.close()
