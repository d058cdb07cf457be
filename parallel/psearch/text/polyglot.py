"""Opening books in Polyglot's format, read by `chess.polyglot`."""

from __future__ import annotations

from random import Random

import chess
import chess.polyglot
import numpy as np

from psearch.results import PsearchError
from psearch.text.file_bytes import file_bytes

_ENTRY_BYTES = 16


class Book(chess.polyglot.MemoryMappedReader):
    """An open book; a context manager. Raises PsearchError when the file is not one."""

    def __init__(self, path: str) -> None:
        try:
            self.mmap = file_bytes(path)
        except (OSError, ValueError) as error:  # ValueError: a name with a null character
            raise PsearchError(f"cannot read the book {path!r}: {getattr(error, 'strerror', None) or error}") from None
        problem = self._problem()
        if problem:
            self.close()
            raise PsearchError(f"{path} is not a Polyglot book: {problem}")

    def __len__(self) -> int:
        """Entries: moves, not positions."""
        return len(self.mmap) // _ENTRY_BYTES

    def _problem(self) -> str:
        """What a binary search could not use."""
        if len(self.mmap) % _ENTRY_BYTES:
            return f"{len(self.mmap):,} bytes are no whole number of entries"
        keys = np.frombuffer(self.mmap, ">u8")[::2]
        return "" if (keys[1:] >= keys[:-1]).all() else "its entries are not in the order of their keys"

    def pick(self, board: chess.Board, random: Random) -> chess.Move | None:
        """Return a legal move of the book, drawn in proportion to the weights, or None. Moves of weight 0 are never
        drawn."""
        try:
            return self.weighted_choice(board, random=random).move
        except IndexError:
            return None

    def expected(self, board: chess.Board) -> chess.Move | None:
        """Return the move that the book gives most weight, or None."""
        entry = self.get(board)
        return None if entry is None else entry.move
