"""Opening books in Polyglot's format; reading them is python-chess's (`chess.polyglot`)."""

from __future__ import annotations

from random import Random

import chess
import chess.polyglot
import numpy as np

from psearch.results import PsearchError

_ENTRY_BYTES = 16
_ENTRY = np.dtype([("key", ">u8"), ("move", ">u2"), ("weight", ">u2"), ("learn", ">u4")])


class Book:
    """An open book; a context manager. Raises PsearchError when the file is not one."""

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            _check(path)
            self._reader = chess.polyglot.open_reader(path)
        except OSError as error:
            raise PsearchError(f"cannot read the book {path}: {error.strerror or error}") from None
        except ValueError as error:  # a name with a null character
            raise PsearchError(f"cannot read the book {path!r}: {error}") from None

    def __enter__(self) -> Book:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __len__(self) -> int:
        """Entries: moves, not positions."""
        return len(self._reader)

    def close(self) -> None:
        """Unmap the file. May be called twice."""
        self._reader.close()

    def pick(self, board: chess.Board, random: Random) -> chess.Move | None:
        """A legal move of the book, drawn in proportion to the weights, or None. Moves of weight 0 are never drawn."""
        try:
            return self._reader.weighted_choice(board, random=random).move
        except IndexError:
            return None


def _check(path: str) -> None:
    """Refuse what is not a book, and what a binary search could not use."""
    with open(path, "rb") as file:
        size = file.seek(0, 2)
        if size == 0:
            raise PsearchError(f"the book {path} is empty")
        if size % _ENTRY_BYTES:
            raise PsearchError(f"{path} is not a Polyglot book: {size:,} bytes are no whole number of entries")
    keys = np.memmap(path, _ENTRY, "r")["key"]
    if not (keys[1:] >= keys[:-1]).all():
        raise PsearchError(f"{path} is not a Polyglot book: its entries are not in the order of their keys")
