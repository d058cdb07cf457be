"""Lines of moves from the root to a node, checked by python-chess or a user's game; illegal ones are dropped."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

import chess
import numpy as np

from psearch.games.own_game import GamePosition
from psearch.results import PsearchError
from psearch_core.chess.board.bridge import to_chess_move
from psearch_core.constants import NULL_MOVE

_MOST_CODE = 1 << 16
_MOST_FOUND = 2048
"""Most lines that are kept; each takes about two kilobytes."""


def chess_lines(root: np.ndarray) -> ChessLines | None:
    """Return the lines from the root of this record; None if it is not a valid position."""
    board = board_of(root)
    return None if board is None else ChessLines(board)


def board_of(record: np.ndarray) -> chess.Board | None:
    """Return the board (at move 1) of a `position_dtype` record; None if it is not a valid position."""
    board = chess.Board(None)
    for square, code in enumerate(record["board"][0].tolist()):
        if code:
            kind = code & 7
            if not chess.PAWN <= kind <= chess.KING or code > 14:
                return None
            board.set_piece_at(square, chess.Piece(kind, code < 8))
    board.turn = int(record["side"][0]) == 0
    board.castling_rights = int(record["castling_bb"][0])
    ep = int(record["ep"][0])
    board.ep_square = ep if 0 <= ep < 64 else None
    board.halfmove_clock = max(0, int(record["rule50"][0]))
    board.chess960 = board.has_chess960_castling_rights()
    return None if None in map(board.king, chess.COLORS) else board


class NodeLine:
    """Holds a position in the tree and the moves to it; names and facts are found when they are first used."""

    def __init__(self, game: NodeLines, position: Any, steps: tuple[tuple[str, str], ...]) -> None:
        self._game = game
        self.position = position
        """Board, or position of a user's game."""
        self.moves = tuple(move for move, _ in steps)
        """Moves in UCI notation; 0000 is a null move."""
        self.words = tuple(word for _, word in steps)
        """Moves in SAN; -- is a null move."""
        self._names: dict[int, tuple[str, str] | None] = {}

    @cached_property
    def fen(self) -> str:
        """Return the FEN; empty for a user's game."""
        return self._game.fen_of(self.position)

    @cached_property
    def choices(self) -> int:
        """Return the number of legal moves."""
        return self._game.count_moves(self.position)

    def named(self, code: int) -> tuple[str, str] | None:
        """Return a move in both notations; None if it is illegal."""
        if code not in self._names:
            self._names[code] = self._game.named(self.position, code)
        return self._names[code]

    def then(self, code: int) -> NodeLine | None:
        """Return the line with one move more; None if it is illegal."""
        name = self.named(code)
        if name is None:
            return None
        steps = (*zip(self.moves, self.words, strict=True), name)
        return NodeLine(self._game, self._game.after(self.position, code), steps)


class NodeLines(ABC):
    """Finds lines from one root, and keeps those that were found, since a tree is searched near its last lines."""

    def __init__(self, root: Any) -> None:
        self.root = NodeLine(self, root, ())
        self._found: dict[tuple[int, ...], NodeLine] = {}

    def line(self, codes: tuple[int, ...]) -> NodeLine | None:
        """Return the line of these moves; None if one is illegal."""
        if len(self._found) > _MOST_FOUND:
            self._found.clear()
        known = next((length for length in range(len(codes), 0, -1) if codes[:length] in self._found), 0)
        line = self._found[codes[:known]] if known else self.root
        for length in range(known, len(codes)):
            longer = line.then(codes[length])
            if longer is None:
                return None
            line = self._found[codes[: length + 1]] = longer
        return line

    def has(self, codes: tuple[int, ...]) -> bool:
        """Tell whether a line is known already."""
        return not codes or codes in self._found

    @abstractmethod
    def fen_of(self, position: Any) -> str:
        """Return the FEN of a position; empty for a user's game."""

    @abstractmethod
    def count_moves(self, position: Any) -> int:
        """Return the number of legal moves."""

    @abstractmethod
    def named(self, position: Any, code: int) -> tuple[str, str] | None:
        """Return a move in both notations; None if it is illegal."""

    @abstractmethod
    def after(self, position: Any, code: int) -> Any:
        """Return the position after a legal move."""


class ChessLines(NodeLines):
    """Lines of chess; a position is a `chess.Board`."""

    def fen_of(self, position: chess.Board) -> str:
        return position.fen()

    def count_moves(self, position: chess.Board) -> int:
        return position.legal_moves.count()

    def named(self, position: chess.Board, code: int) -> tuple[str, str] | None:
        move = _decoded(code, position)
        if move is None or (move and not position.is_legal(move)):
            return None
        return move.uci(), position.san(move)

    def after(self, position: chess.Board, code: int) -> chess.Board:
        board = position.copy(stack=False)
        move = _decoded(code, board)
        assert move is not None
        board.push(move)
        return board


class GameLines(NodeLines):
    """Lines of a user's game, in its own notation."""

    def fen_of(self, position: GamePosition) -> str:
        return ""

    def count_moves(self, position: GamePosition) -> int:
        return len(_game_moves(position))

    def named(self, position: GamePosition, code: int) -> tuple[str, str] | None:
        if code not in _game_moves(position):
            return None
        word = position.name_of(code)
        return word, word

    def after(self, position: GamePosition, code: int) -> GamePosition:
        return position.after(code - 1)


def _game_moves(position: GamePosition) -> list[int]:
    try:
        return position.root_moves()
    except PsearchError:  # the game has no moves or too many, which the search reports
        return []


def _decoded(code: int, board: chess.Board) -> chess.Move | None:
    """Return the move of a code, None for an invalid one; moves other than null moves may be illegal."""
    if code == NULL_MOVE:
        return None if board.is_check() else chess.Move.null()
    return to_chess_move(code, board) if 0 < code < _MOST_CODE else None
