"""From python-chess to our positions and back: parsing and validation are python-chess's business."""

from __future__ import annotations

import chess
import numpy as np

from psearch.core.constants import (
    KIND_CASTLE,
    KIND_DOUBLE,
    KIND_EP,
    KIND_NORMAL,
    KIND_PROMOTE,
    KNIGHT,
    NO_MOVE,
    NO_SQUARE,
)
from psearch.core.entries import complete


def set_position(tables: np.ndarray, position: np.ndarray, board: chess.Board) -> None:
    """Fill an array of one `position_dtype` record from a valid board (Chess960 included)."""
    record = position[0]
    squares = bytearray(64)
    for piece in chess.PIECE_TYPES:
        for color, code in ((chess.WHITE, piece), (chess.BLACK, 8 + piece)):
            for square in chess.scan_forward(board.pieces_mask(piece, color)):
                squares[square] = code
    record["board"] = np.frombuffer(squares, np.uint8)
    record["side"] = 0 if board.turn else 1
    record["castling_bb"] = board.clean_castling_rights()
    record["ep"] = NO_SQUARE if board.ep_square is None else board.ep_square
    record["rule50"] = board.halfmove_clock
    record["reversible"] = board.halfmove_clock
    complete(tables.ctypes.data, position.ctypes.data)


def to_chess_move(move: int, board: chess.Board) -> chess.Move:
    """A move code as python-chess writes it on this board: castling by king or by rook square as it prefers."""
    origin, target, kind = move & 63, (move >> 6) & 63, (move >> 12) & 15
    if kind == KIND_CASTLE and not board.chess960:
        target = chess.square(6 if target > origin else 2, chess.square_rank(origin))
    promotion = kind - KIND_PROMOTE + KNIGHT + 1 if kind >= KIND_PROMOTE else None
    return chess.Move(origin, target, promotion)


def from_chess_move(move: chess.Move, board: chess.Board) -> int:
    """The code of a legal move on this board."""
    if not move:
        return NO_MOVE
    origin, target = move.from_square, move.to_square
    if board.is_castling(move):
        rank_bb = chess.BB_RANKS[chess.square_rank(origin)]
        rooks = chess.SquareSet(board.clean_castling_rights() & rank_bb)
        short = target > origin
        target = (max if short else min)(rooks)
        return origin | target << 6 | KIND_CASTLE << 12
    kind = KIND_NORMAL
    if move.promotion:
        kind = KIND_PROMOTE + move.promotion - 1 - KNIGHT
    elif board.is_en_passant(move):
        kind = KIND_EP
    elif board.piece_type_at(origin) == chess.PAWN and abs(origin - target) == 16:
        kind = KIND_DOUBLE
    return origin | target << 6 | kind << 12
