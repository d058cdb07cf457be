"""Opening books in Polyglot's format: 16 bytes an entry, sorted by the key of the position (`chess.polyglot`)."""

from __future__ import annotations

import os
import stat
import struct
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import suppress
from errno import EISDIR
from random import Random

import chess
import chess.polyglot
import numpy as np

from psearch.results import PsearchError

_ENTRY = struct.Struct(">QHHI")
"""key, move, weight, what was learnt"""
_ENTRIES = np.dtype([("key", ">u8"), ("move", ">u2"), ("weight", ">u2"), ("learn", ">u4")])
_CHECKED_AT_ONCE = 1 << 16
"""entries"""


class Book:
    """An open book; a context manager. Raises PsearchError when the file is not one.

    The file is read, not mapped: one that is cut short while it is open would end the whole program otherwise.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._fd: int | None = None
        try:
            # a pipe without a writer would not even let itself be opened otherwise
            self._fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            self._size = self._checked_size()
        except OSError as error:
            self.close()
            raise PsearchError(f"cannot read the book {path}: {error.strerror or error}") from None
        except ValueError as error:  # a name with a null character
            raise PsearchError(f"cannot read the book {path!r}: {error}") from None
        except PsearchError:
            self.close()
            raise

    def __enter__(self) -> Book:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __len__(self) -> int:
        """Entries: moves, not positions."""
        return self._size

    def close(self) -> None:
        """Close the file. May be called twice."""
        fd, self._fd = self._fd, None
        if fd is not None:
            os.close(fd)

    def pick(self, board: chess.Board, random: Random) -> chess.Move | None:
        """Return a legal move of the book, drawn in proportion to the weights, or None. Moves of weight 0 are never
        drawn.

        Raises PsearchError when the file cannot be read any more.
        """
        found = self._weighed(board)
        if not found:
            return None
        moves, weights = zip(*found, strict=True)
        picked: chess.Move = random.choices(moves, weights)[0]
        return picked

    def expected(self, board: chess.Board) -> chess.Move | None:
        """Return the move that the book gives most weight, or None. Raises PsearchError as `pick` does."""
        return max(self._weighed(board), key=lambda found: found[1], default=(None, 0))[0]

    def _weighed(self, board: chess.Board) -> list[tuple[chess.Move, int]]:
        """The moves with a weight."""
        try:
            return [(move, weight) for move, weight in self._moves(board) if weight]
        except OSError as error:
            raise PsearchError(f"cannot read the book {self.path}: {error.strerror or error}") from None

    def _moves(self, board: chess.Board) -> Iterator[tuple[chess.Move, int]]:
        """The legal moves that the book has for a position, with their weights."""
        key = chess.polyglot.zobrist_hash(board)
        for index in range(bisect_left(range(self._size), key, key=lambda index: self._entry(index)[0]), self._size):
            found, code, weight, _ = self._entry(index)
            if found != key:
                return
            move = _legal_move(board, code)
            if move is not None:
                yield move, weight

    def _entry(self, index: int) -> tuple[int, int, int, int]:
        """Key, move, weight and what was learnt."""
        key, code, weight, learn = _ENTRY.unpack(self._read(index, 1))
        return key, code, weight, learn

    def _read(self, first: int, count: int) -> bytes:
        """The bytes of some entries. Raises OSError."""
        assert self._fd is not None
        data = os.pread(self._fd, count * _ENTRY.size, first * _ENTRY.size)
        if len(data) < count * _ENTRY.size:
            raise OSError("it has been cut short")
        return data

    def _checked_size(self) -> int:
        """Entries of the file; refuses what is not a book, and what a binary search could not use."""
        assert self._fd is not None
        status = os.fstat(self._fd)
        if stat.S_ISDIR(status.st_mode):
            raise OSError(EISDIR, os.strerror(EISDIR))
        if not stat.S_ISREG(status.st_mode):
            raise PsearchError(f"cannot read the book {self.path}: it is not a regular file")
        if status.st_size == 0:
            raise PsearchError(f"the book {self.path} is empty")
        size, rest = divmod(status.st_size, _ENTRY.size)
        if rest:
            raise PsearchError(
                f"{self.path} is not a Polyglot book: {status.st_size:,} bytes are no whole number of entries"
            )
        for first in range(0, size, _CHECKED_AT_ONCE):
            begin = max(first - 1, 0)  # the last key of the entries before, too
            data = self._read(begin, min(first + _CHECKED_AT_ONCE, size) - begin)
            keys = np.frombuffer(data, _ENTRIES)["key"]
            if not (keys[1:] >= keys[:-1]).all():
                raise PsearchError(
                    f"{self.path} is not a Polyglot book: its entries are not in the order of their keys"
                )
        return size


def _legal_move(board: chess.Board, code: int) -> chess.Move | None:
    """The move that 16 bits of a book mean, written as the board writes it; None if it is not legal."""
    promotion = code >> 12 & 7
    if promotion > chess.QUEEN - 1:
        return None
    move = chess.Move(code >> 6 & 63, code & 63, promotion + 1 if promotion else None)
    # the format writes castling as king takes rook, which `parse_uci` understands on any board
    with suppress(ValueError):
        return board.parse_uci(move.uci()) or None
    return None
