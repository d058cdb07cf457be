"""Small helpers on squares, bitboards and moves."""

from __future__ import annotations

import numpy as np

from psearch_core.constants import NOT_FILE_A_BB, NOT_FILE_H_BB, U1
from psearch_core.toolchain.jit import kernel
from psearch_core.views import i64, u64


@kernel(u64(i64))
def bit(square):
    return U1 << np.uint64(square)


@kernel(i64(i64, i64, i64))
def make_code(origin, target, kind):
    return origin | (target << 6) | (kind << 12)


@kernel(i64(i64))
def move_from(move):
    return move & 63


@kernel(i64(i64))
def move_to(move):
    return (move >> 6) & 63


@kernel(i64(i64))
def move_kind(move):
    return (move >> 12) & 15


@kernel(u64(u64, i64))
def forward(squares_bb, side):
    """Return all squares one rank towards the opponent."""
    return squares_bb << np.uint64(8) if side == 0 else squares_bb >> np.uint64(8)


@kernel(u64(u64, i64))
def pawn_attacks_west(pawns_bb, side):
    """Return squares that pawns of a side attack towards the a-file."""
    west = pawns_bb & NOT_FILE_A_BB
    return west << np.uint64(7) if side == 0 else west >> np.uint64(9)


@kernel(u64(u64, i64))
def pawn_attacks_east(pawns_bb, side):
    """Return squares that pawns of a side attack towards the h-file."""
    east = pawns_bb & NOT_FILE_H_BB
    return east << np.uint64(9) if side == 0 else east >> np.uint64(7)


@kernel(i64(i64, i64))
def distance(a, b):
    """Return king steps between two squares."""
    return max(abs((a & 7) - (b & 7)), abs((a >> 3) - (b >> 3)))
