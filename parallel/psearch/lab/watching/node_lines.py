"""Lines of moves from the root to a node, checked by python-chess or a user's game; illegal ones are dropped."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import chess
import numpy as np

from psearch.games.own_game import GamePosition
from psearch.results import PsearchError
from psearch_core.chess.board.bridge import to_chess_move
from psearch_core.constants import NULL_MOVE

_MOST_CODE = 1 << 16


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
    kings = {color: board.king(color) for color in chess.COLORS}
    sides = ((chess.WHITE, chess.BB_RANK_1, chess.E1), (chess.BLACK, chess.BB_RANK_8, chess.E8))
    board.chess960 = bool(board.castling_rights & ~chess.BB_CORNERS) or any(
        board.castling_rights & rank and kings[color] != home for color, rank, home in sides
    )
    return None if None in kings.values() else board


class NodeLine(NamedTuple):
    """Holds a position in the tree and the moves that lead to it."""

    codes: tuple[int, ...]
    """Codes of the moves from the root."""
    moves: tuple[str, ...]
    """Moves in UCI notation; 0000 is a null move."""
    words: tuple[str, ...]
    """Moves in SAN; -- is a null move."""
    position: Any
    """Board, or position of a user's game."""
    fen: str
    """FEN; empty for a user's game."""
    choices: int
    """Number of legal moves."""


class NodeLines(ABC):
    """Finds lines from one root; extends known lines where possible."""

    def __init__(self, root: Any) -> None:
        self._start = NodeLine((), (), (), root, *self.described(root))
        self.fen = self._start.fen
        """FEN of the root; empty for a user's game."""

    def line(self, codes: tuple[int, ...], near: NodeLine | None = None) -> NodeLine | None:
        """Return the line of these moves; None if one is illegal. near: a known line that may be its beginning."""
        if near is None or codes[: len(near.codes)] != near.codes:
            near = self._start
        if near.codes == codes:
            return near
        position, moves, words = near.position, list(near.moves), list(near.words)
        for code in codes[len(near.codes) :]:
            named = self.named(position, code)
            if named is None:
                return None
            moves.append(named[0])
            words.append(named[1])
            position = self.after(position, code)
        return NodeLine(codes, tuple(moves), tuple(words), position, *self.described(position))

    @abstractmethod
    def described(self, position: Any) -> tuple[str, int]:
        """Return `fen` and `choices` of a position."""

    @abstractmethod
    def named(self, position: Any, code: int) -> tuple[str, str] | None:
        """Return a move in both notations; None if it is illegal."""

    @abstractmethod
    def after(self, position: Any, code: int) -> Any:
        """Return the position after a legal move."""


class ChessLines(NodeLines):
    """Lines of chess; a position is a `chess.Board`."""

    def described(self, position: chess.Board) -> tuple[str, int]:
        return position.fen(), position.legal_moves.count()

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

    def described(self, position: GamePosition) -> tuple[str, int]:
        return "", len(_game_moves(position))

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
