"""From the root to a node: the moves, checked by python-chess. What is not legal is not shown."""

from __future__ import annotations

from typing import NamedTuple

import chess
import numpy as np

from psearch.core.chess.board.bridge import to_chess_move
from psearch.core.constants import NULL_MOVE

_STANDARD_ROOKS = chess.BB_CORNERS
_MOST_CODE = 1 << 16


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


class NodeLine(NamedTuple):
    """A position in the tree, and the way there."""

    codes: tuple[int, ...]
    moves: tuple[str, ...]
    """from the root, UCI; 0000 is a null move"""
    words: tuple[str, ...]
    """the same in SAN; -- is a null move"""
    board: chess.Board
    fen: str
    legal: frozenset[chess.Move]


class Lines:
    """Lines from one root. Each is found from one that is known already, where there is one."""

    def __init__(self, root: chess.Board) -> None:
        self.root = root
        self.fen = root.fen()
        self._start = NodeLine((), (), (), root, self.fen, frozenset(root.legal_moves))

    def line(self, codes: tuple[int, ...], near: NodeLine | None = None) -> NodeLine | None:
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
        return NodeLine(codes, tuple(moves), tuple(words), board, board.fen(), frozenset(board.legal_moves))


def move_at(line: NodeLine, code: int) -> chess.Move | None:
    """Return the move of a code, if it is legal after a line."""
    move = _decoded(code, line.board)
    return move if move is not None and (not move or move in line.legal) else None


def _legal(code: int, board: chess.Board) -> chess.Move | None:
    """The move of a code, if it may be played."""
    move = _decoded(code, board)
    return move if move is not None and (not move or board.is_legal(move)) else None


def _decoded(code: int, board: chess.Board) -> chess.Move | None:
    """A null move is one only where it may be made; other moves may be anything."""
    if code == NULL_MOVE:
        return None if board.is_check() else chess.Move.null()
    return to_chess_move(code, board) if 0 < code < _MOST_CODE else None
