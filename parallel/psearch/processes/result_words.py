"""How the numbers of a search become what `Info` holds: scores, moves, lines; for chess, and for another game."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import chess
import chess.engine
import numpy as np

from psearch.arena.arena import Arena
from psearch.arena.setup import Subject
from psearch.processes.line_completion import whole_line
from psearch.results import WON_CP, Info
from psearch_core.chess.board.bridge import to_chess_move
from psearch_core.chess.chess_entries import evaluate_position
from psearch_core.constants import BOUND_EXACT, BOUND_LOWER, BOUND_UPPER, MATE, MATE_IN_MAX_PLY
from psearch_core.records import evaluation_dtype


def to_score(value: int, turn: chess.Color, bound: int = BOUND_EXACT) -> chess.engine.PovScore:
    """Return centipawns or mate distance, from the view of the side to move.

    A bound that tells of a mate says who wins; its distance is that of some line, often a far too long one, and is not
    passed on.
    """
    if bound == (BOUND_LOWER if value > 0 else BOUND_UPPER) and abs(value) >= MATE_IN_MAX_PLY:
        value = WON_CP if value > 0 else -WON_CP
    if abs(value) < MATE_IN_MAX_PLY:
        return chess.engine.PovScore(chess.engine.Cp(value), turn)
    moves = (MATE - abs(value) + 1) // 2
    return chess.engine.PovScore(chess.engine.Mate(moves if value > 0 else -moves), turn)


class Words(Protocol):
    """What a game makes of the numbers of its search. A move is a `chess.Move`, or of another game its number."""

    def score(self, value: int, bound: int = BOUND_EXACT) -> chess.engine.PovScore:
        """Return a score from the view of the side to move at the root."""

    def move(self, code: int) -> Any:
        """Return the move of this number at the root, or on a line from there."""

    def is_legal(self, move: Any) -> bool:
        """Tell whether a move is legal at the root."""

    def whole_line(self, arena: Arena, info: Info, known: Sequence[Any]) -> list[Any]:
        """Return all that is known of a report's line. known: a line from this search that begins as it does."""

    def static_score(self, arena: Arena) -> chess.engine.PovScore:
        """Return what the root is worth without a search."""


def words_of(board: chess.Board | Subject) -> Words:
    """Return the words for what is searched."""
    return ChessWords(board) if isinstance(board, chess.Board) else GameWords(board)


class ChessWords:
    """Those of chess."""

    def __init__(self, board: chess.Board) -> None:
        self._board = board

    def score(self, value: int, bound: int = BOUND_EXACT) -> chess.engine.PovScore:
        """See `to_score`."""
        return to_score(value, self._board.turn, bound)

    def move(self, code: int) -> chess.Move:
        """See `Words`."""
        return to_chess_move(code, self._board)

    def is_legal(self, move: chess.Move) -> bool:
        """See `Words`."""
        return move in self._board.legal_moves

    def whole_line(self, arena: Arena, info: Info, known: Sequence[chess.Move]) -> list[chess.Move]:
        """Return the line with what the table says next; see `line_completion.py`."""
        return whole_line(arena, self._board, info, known)

    def static_score(self, arena: Arena) -> chess.engine.PovScore:
        """See `Words`."""
        scratch = np.zeros(1, evaluation_dtype)  # a late worker may still be using its own
        addresses = (array.ctypes.data for array in (arena.tables, scratch, arena.header["root"]))
        return self.score(int(evaluate_position(*addresses)))


class GameWords:
    """Those of another game."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject

    def score(self, value: int, bound: int = BOUND_EXACT) -> chess.engine.PovScore:
        """Return the number in the place of centipawns."""
        return chess.engine.PovScore(chess.engine.Cp(value), chess.WHITE)

    def move(self, code: int) -> int:
        """Return the number itself."""
        return code

    def is_legal(self, move: int) -> bool:
        """See `Words`."""
        return move in self._subject.root_moves()

    def whole_line(self, arena: Arena, info: Info, known: Sequence[int]) -> list[Any]:
        """Return the longer one of the two lines."""
        return max([list(info.pv), list(known)], key=len)

    def static_score(self, arena: Arena) -> chess.engine.PovScore:
        """See `Words`."""
        return self.score(self._subject.static_score())
