"""From the root to a node: the moves, checked by python-chess, or by a user's game (`game_lines`). What is not legal is
not shown."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import chess
import numpy as np

from psearch.core.chess.board.bridge import to_chess_move
from psearch.core.constants import NULL_MOVE

_STANDARD_ROOKS = chess.BB_CORNERS
_MOST_CODE = 1 << 16


def chess_lines(root: np.ndarray) -> ChessLines | None:
    """Return the lines from a root, `board_of` its record; None if there is none that could be searched."""
    board = board_of(root)
    return None if board is None else ChessLines(board)


def board_of(record: np.ndarray) -> chess.Board | None:
    """Return the board of one `position_dtype` record in an array; None if it is none that could be searched.

    The number of the move is not known, and 1.
    """
    codes = record["board"][0].tolist()
    board = chess.Board(None)
    for square, code in enumerate(codes):
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
    kings = [board.king(color) for color in chess.COLORS]
    if None in kings:
        return None
    homes = (chess.E1, chess.E8)
    standard = not board.castling_rights & ~_STANDARD_ROOKS and all(
        not board.castling_rights & rank or board.king(color) == home
        for color, rank, home in ((chess.WHITE, chess.BB_RANK_1, homes[0]), (chess.BLACK, chess.BB_RANK_8, homes[1]))
    )
    board.chess960 = not standard
    return board if board.king(board.turn) is not None else None


class NodeLine(Protocol):
    """A position in the tree, and the way there."""

    @property
    def codes(self) -> tuple[int, ...]:
        """Return the moves from the root, as the search has them."""

    @property
    def moves(self) -> tuple[str, ...]:
        """Return the moves for programs: UCI; 0000 is a null move."""

    @property
    def words(self) -> tuple[str, ...]:
        """Return the moves for people: SAN; -- is a null move."""

    @property
    def fen(self) -> str:
        """Return the position; empty where it is none of chess."""

    @property
    def choices(self) -> int:
        """Return the number of legal moves."""

    def named(self, code: int) -> tuple[str, str] | None:
        """Return a move from here, for programs and for people; None if it is not legal."""


class Lines(Protocol):
    """Lines from one root."""

    fen: str
    """of the root; empty where it is none of chess"""

    def line(self, codes: tuple[int, ...], near: Any = None) -> NodeLine | None:
        """Return the line of these moves; None if one is not legal. near: a line of these that may be its beginning."""


class ChessLine(NamedTuple):
    """A `NodeLine` of chess."""

    codes: tuple[int, ...]
    moves: tuple[str, ...]
    words: tuple[str, ...]
    board: chess.Board
    fen: str
    legal: frozenset[chess.Move]

    @property
    def choices(self) -> int:
        """Return the number of legal moves."""
        return len(self.legal)

    def named(self, code: int) -> tuple[str, str] | None:
        """Return a move from here, in UCI and in SAN; None if it is not legal."""
        move = _decoded(code, self.board)
        return (move.uci(), self.board.san(move)) if move is not None and (not move or move in self.legal) else None


class ChessLines:
    """`Lines` of chess. Each is found from one that is known already, where there is one."""

    def __init__(self, root: chess.Board) -> None:
        self.fen = root.fen()
        self._start = ChessLine((), (), (), root, self.fen, frozenset(root.legal_moves))

    def line(self, codes: tuple[int, ...], near: ChessLine | None = None) -> ChessLine | None:
        """Return the line of these moves; None if one is not legal. near: a line that may be the beginning of it."""
        if near is None or codes[: len(near.codes)] != near.codes:
            near = self._start
        rest = codes[len(near.codes) :]
        if not rest:
            return near
        board = near.board.copy(stack=False)
        moves, words = list(near.moves), list(near.words)
        for code in rest:
            move = _legal(code, board)
            if move is None:
                return None
            moves.append(move.uci())
            words.append(board.san_and_push(move))
        return ChessLine(codes, tuple(moves), tuple(words), board, board.fen(), frozenset(board.legal_moves))


def _legal(code: int, board: chess.Board) -> chess.Move | None:
    """The move of a code, if it may be played."""
    move = _decoded(code, board)
    return move if move is not None and (not move or board.is_legal(move)) else None


def _decoded(code: int, board: chess.Board) -> chess.Move | None:
    """A null move is one only where it may be made; other moves may be anything."""
    if code == NULL_MOVE:
        return None if board.is_check() else chess.Move.null()
    return to_chess_move(code, board) if 0 < code < _MOST_CODE else None
