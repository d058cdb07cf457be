"""The evaluation by a small network (NNUE): integers only, so the same on every machine.

Each side sees the board from its own side, mirrored so that its king stands on files a to d. Each man is an input, and
each input a row of weights; a side's *sums* are those of the rows of all men, one sum for each hidden unit. The output
weighs the squares of the sums, cut off at 0 and 1, the mover's before the other's; which of the outputs, the number of
men says.

A move changes few men, so the sums are kept, with the board that they are of, in a ring of the worker's own, by ply. An
evaluation looks for the board that differs least among those of its own ply (a sibling) and the two plies before, and
adds and takes off the rows of the squares that differ. No move, stack or frame needs to know of the sums, and they are
right whoever searched the plies before: what they are of stands beside them.
"""

from __future__ import annotations

import numpy as np

from psearch_core.chess.board.position import king_square, occupied
from psearch_core.records import (
    ACCUMULATORS,
    NETWORK_BUCKETS,
    NETWORK_HIDDEN,
    OUT_ONE,
    ROW_ONE,
    accumulator_dtype,
    evaluation_dtype,
    network_dtype,
    offset_of,
    position_dtype,
    tables_dtype,
)
from psearch_core.toolchain.intrinsics import (
    address,
    check,
    copy_bytes,
    differing_bytes,
    lowest_bit,
    popcount,
    row_adder,
    square_dot,
)
from psearch_core.toolchain.jit import CHECK, kernel
from psearch_core.views import Accumulator, Evaluation, Position, Tables, accumulator_at, boolean, i64, u64, void

MOST = 20_000
"""Centipawns: no network says more, which keeps its values clear of mates."""
_NATURAL = ROW_ONE * ROW_ONE * OUT_ONE
_ROW_BYTES = 2 * NETWORK_HIDDEN
_ACCUMULATOR_BYTES = accumulator_dtype.itemsize
_SUMS = offset_of(accumulator_dtype, "sums")
_BOARD = offset_of(position_dtype, "board")
_SCRATCH = offset_of(evaluation_dtype, "network")
_ADDED = _SCRATCH + offset_of(evaluation_dtype["network"], "added")
_REMOVED = _SCRATCH + offset_of(evaluation_dtype["network"], "removed")
_NETWORK = offset_of(tables_dtype, "network")
_BIAS = _NETWORK + offset_of(network_dtype, "bias")
_OUT = _NETWORK + offset_of(network_dtype, "out")

if offset_of(accumulator_dtype, "board") or _NETWORK or offset_of(network_dtype, "rows"):
    raise AssertionError("the board of an accumulator, and the rows of the tables, are expected to come first")

_add_rows = row_adder(NETWORK_HIDDEN)
_square_dot = square_dot(NETWORK_HIDDEN, ROW_ONE)


@kernel(i64(Position, i64))
def _view(pos, side):
    """How a side sees the board: what its squares are flipped by, and 1 more, for 0 is nothing."""
    flip = 56 * side
    if king_square(pos, side) & 4 != 0:
        flip ^= 7
    return flip + 1


@kernel(i64(Tables, i64, i64, i64, i64))
def _row(tb, code, square, side, flip):
    """The address of the row of a man."""
    feature = 384 * ((code >> 3) ^ side) + 64 * ((code & 7) - 1) + (square ^ flip)
    return address(tb) + feature * _ROW_BYTES


@kernel(i64(Evaluation, i64))
def _slot(ev, ply):
    """The address of the sums of a ply."""
    return address(ev) + _SCRATCH + (ply & (ACCUMULATORS - 1)) * _ACCUMULATOR_BYTES


@kernel(void(Tables, Evaluation, Position, Accumulator, i64, i64))
def _sum_up(tb, ev, pos, target, side, flip):
    """Write a side's sums from nothing."""
    count = 0
    men_bb = occupied(pos)
    while men_bb != np.uint64(0):
        square = lowest_bit(men_bb)
        men_bb &= men_bb - np.uint64(1)
        ev.network.added[count] = _row(tb, pos.board[square], square, side, flip)
        count += 1
    sums = address(target) + _SUMS + side * _ROW_BYTES
    _add_rows(sums, address(tb) + _BIAS, address(ev) + _ADDED, count, address(ev) + _REMOVED, 0)


@kernel(void(Tables, Evaluation, Position, Accumulator, Accumulator, i64, i64, u64))
def _sum_changes(tb, ev, pos, source, target, side, flip, changed_bb):
    """Write a side's sums from those of a board that differs on some squares, seen in the same way."""
    added = 0
    removed = 0
    while changed_bb != np.uint64(0):
        square = lowest_bit(changed_bb)
        changed_bb &= changed_bb - np.uint64(1)
        before = np.int64(source.board[square])
        after = np.int64(pos.board[square])
        if before != 0:
            ev.network.removed[removed] = _row(tb, before, square, side, flip)
            removed += 1
        if after != 0:
            ev.network.added[added] = _row(tb, after, square, side, flip)
            added += 1
    sums = _SUMS + side * _ROW_BYTES
    _add_rows(
        address(target) + sums, address(source) + sums, address(ev) + _ADDED, added, address(ev) + _REMOVED, removed
    )


@kernel(i64(Evaluation, Position, i64))
def _nearest(ev, pos, ply):
    """The address of the sums whose board differs least: of this ply, or of one of the two before."""
    board = address(pos) + _BOARD
    best = _slot(ev, ply - 1)
    least = popcount(differing_bytes(board, best))
    for near in (ply, ply - 2):
        if least > 4:  # a move changes no more
            other = _slot(ev, near)
            differing = popcount(differing_bytes(board, other))
            if differing < least:
                least = differing
                best = other
    return best


@kernel(i64(Tables, Position, i64, i64))
def _sum_of(tb, pos, side, unit):
    """One of a side's sums, by definition."""
    flip = _view(pos, side) - 1
    sum = np.int64(tb.network.bias[unit])
    men_bb = occupied(pos)
    while men_bb != np.uint64(0):
        square = lowest_bit(men_bb)
        men_bb &= men_bb - np.uint64(1)
        code = np.int64(pos.board[square])
        sum += tb.network.rows[384 * ((code >> 3) ^ side) + 64 * ((code & 7) - 1) + (square ^ flip), unit]
    return sum


@kernel(boolean(Tables, Position, Accumulator))
def _is_right(tb, pos, target):
    """Whether sums that were kept up to date are those of the position."""
    for side in range(2):
        for unit in range(NETWORK_HIDDEN):
            if target.sums[side, unit] != _sum_of(tb, pos, side, unit):
                return False
    return True


@kernel(i64(Tables, Evaluation, Position, i64))
def network_value(tb, ev, pos, ply):
    """Return what the network says of a position, centipawns for the side to move.

    ev: private to the worker; ply: where sums of a similar board may be found, and where these are left.
    """
    target = accumulator_at(_slot(ev, ply))
    source = accumulator_at(_nearest(ev, pos, ply))
    changed_bb = differing_bytes(address(pos) + _BOARD, address(source))
    men = popcount(occupied(pos))
    is_far = popcount(changed_bb) > men
    for side in range(2):
        view = _view(pos, side)
        if is_far or source.views[side] != view:
            _sum_up(tb, ev, pos, target, side, view - 1)
        else:
            _sum_changes(tb, ev, pos, source, target, side, view - 1, changed_bb)
        target.views[side] = view
    copy_bytes(address(target), address(pos) + _BOARD, 64)
    if CHECK:
        check(_is_right(tb, pos, target), "the network's sums are those of the position")
    mover = np.int64(pos.side)
    bucket = min((men - 1) >> 2, NETWORK_BUCKETS - 1)
    sums = address(target) + _SUMS
    out = address(tb) + _OUT + bucket * 2 * _ROW_BYTES
    total = _square_dot(sums + mover * _ROW_BYTES, out) + _square_dot(sums + (1 - mover) * _ROW_BYTES, out + _ROW_BYTES)
    value = (total + np.int64(tb.network.out_bias[bucket])) * np.int64(tb.network.unit) // _NATURAL
    return min(max(value, -MOST), MOST)
