"""The network's value from its definition, in numpy, a position at a time or many at once: the kernels' twin."""

from __future__ import annotations

import chess
import numpy as np

from psearch_core.records import OUT_ONE, ROW_ONE

_CODES = [chess.PAWN, chess.KNIGHT, chess.BISHOP, chess.ROOK, chess.QUEEN, chess.KING]


def board_codes(board: chess.Board) -> np.ndarray:
    """Return what stands on the squares, as `position_dtype` has it: 0, else colour * 8 + piece type + 1."""
    codes = np.zeros(64, np.int64)
    for square, piece in board.piece_map().items():
        codes[square] = (0 if piece.color else 8) + _CODES.index(piece.piece_type) + 1
    return codes


def sums_of(network: np.void, codes: np.ndarray, side: int) -> np.ndarray:
    """Return a side's sums of (n, 64) boards, (n, hidden units)."""
    kings = np.argmax(codes == side * 8 + 6, axis=1)
    flips = 56 * side ^ np.where(kings & 4, 7, 0)
    sums = np.tile(network["bias"].astype(np.int32), (len(codes), 1))
    rows = network["rows"].astype(np.int32)
    for square in range(64):
        code = codes[:, square]
        there = code > 0
        feature = 384 * ((code >> 3) ^ side) + 64 * ((code & 7) - 1) + (square ^ flips)
        sums[there] += rows[feature[there]]
    return sums


def values_of(network: np.void, codes: np.ndarray, movers: np.ndarray) -> np.ndarray:
    """Return the values of (n, 64) boards in centipawns for the side to move, 0 White or 1 Black."""
    both = np.stack([sums_of(network, codes, side) for side in (0, 1)])
    units = np.clip(both, 0, ROW_ONE).astype(np.int64) ** 2
    places = np.arange(len(codes))
    bucket = ((codes > 0).sum(axis=1) - 1) // 4
    out = network["out"].astype(np.int64)[bucket]
    total = (units[movers, places] * out[:, 0]).sum(axis=1) + (units[1 - movers, places] * out[:, 1]).sum(axis=1)
    total += network["out_bias"][bucket]
    return np.clip(total * int(network["unit"]) // (ROW_ONE * ROW_ONE * OUT_ONE), -20_000, 20_000)
