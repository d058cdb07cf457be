"""Converts python-chess's boards and moves to ours and back. python-chess does all parsing and validation."""

from __future__ import annotations

from functools import lru_cache

import chess
import numpy as np

from psearch_core.chess.chess_entries import complete
from psearch_core.constants import (
    KIND_CASTLE,
    KIND_DOUBLE,
    KIND_EP,
    KIND_NORMAL,
    KIND_PROMOTE,
    KNIGHT,
    NO_MOVE,
    NO_SQUARE,
)

_CODES = np.array([*chess.PIECE_TYPES, 8], np.uint8)
"""Numbers added to the code of a square: one for each type of piece, and one for a black piece."""


def set_position(tables: np.ndarray, position: np.ndarray, board: chess.Board) -> None:
    """Fill an array of one `position_dtype` record from a valid board (Chess960 included)."""
    record = position[0]
    kinds = (board.pawns, board.knights, board.bishops, board.rooks, board.queens, board.kings)
    masks = np.array([*kinds, board.occupied_co[chess.BLACK]], "<u8")
    record["board"] = _CODES @ np.unpackbits(masks.view(np.uint8), bitorder="little").reshape(-1, 64)
    record["side"] = 0 if board.turn else 1
    record["castling_bb"] = board.clean_castling_rights()
    record["ep"] = NO_SQUARE if board.ep_square is None else board.ep_square
    record["rule50"] = board.halfmove_clock
    record["reversible"] = board.halfmove_clock
    complete(tables.ctypes.data, position.ctypes.data)


def to_chess_move(move: int, board: chess.Board) -> chess.Move:
    """Return python-chess's move for a move code on this board, whose variant decides how castling is written."""
    return _chess_move(move, board.chess960)


@lru_cache(1 << 14)
def _chess_move(move: int, is_chess960: bool) -> chess.Move:
    origin, target, kind = move & 63, (move >> 6) & 63, (move >> 12) & 15
    if kind == KIND_CASTLE and not is_chess960:
        target = chess.square(6 if target > origin else 2, chess.square_rank(origin))
    promotion = kind - KIND_PROMOTE + KNIGHT + 1 if kind >= KIND_PROMOTE else None
    return chess.Move(origin, target, promotion)


def from_chess_move(move: chess.Move, board: chess.Board) -> int:
    """Return the code of a legal move on this board."""
    if not move:
        return NO_MOVE
    origin, target = move.from_square, move.to_square
    piece = board.piece_type_at(origin)
    if piece == chess.KING and board.is_castling(move):
        rank_bb = chess.BB_RANKS[chess.square_rank(origin)]
        rooks = chess.SquareSet(board.clean_castling_rights() & rank_bb)
        short = target > origin
        target = (max if short else min)(rooks)
        return origin | target << 6 | KIND_CASTLE << 12
    kind = KIND_NORMAL
    if move.promotion:
        kind = KIND_PROMOTE + move.promotion - 1 - KNIGHT
    elif piece == chess.PAWN and board.is_en_passant(move):
        kind = KIND_EP
    elif piece == chess.PAWN and abs(origin - target) == 16:
        kind = KIND_DOUBLE
    return origin | target << 6 | kind << 12
