"""Evaluates positions by a small network (NNUE), in integers only, so that every machine computes the same.

Each side views the board from its own side, mirrored so that its king is on files a to d. Each man is an input with a
row of weights; a side's *sums* add up the rows of all men, one sum for each hidden unit. The sums are clipped to 0 .. 1
and squared, and the output is their weighted sum, the mover's before the other's. The number of men selects the output.

A move changes few men. So each worker keeps sums, each with its board, in a ring by ply. An evaluation takes the board
that differs least, among those of its own ply (a sibling) and of the two plies before, and adds and subtracts the rows
of the squares that differ. Moves, stacks and frames do not depend on the sums. The sums are right even if other workers
searched the plies before, since each is stored with its board.
"""

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
    prefetch,
    row_adder,
    row_mover,
    square_dot,
)
from psearch_core.toolchain.jit import CHECK, kernel
from psearch_core.views import Accumulator, Evaluation, Position, Tables, accumulator_at, boolean, i64, u64, void

MOST = 20_000
"""Greatest value of a network, in centipawns, which keeps its values clear of mates."""
_LAST_SQUARE = np.uint64(1 << 63)
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
_move_rows = row_mover(NETWORK_HIDDEN)
_square_dot = square_dot(NETWORK_HIDDEN, ROW_ONE)


@kernel(i64(Position, i64))
def _view(pos, side):
    """Return a side's view of the board: the number that its squares are flipped by, plus 1, since 0 means none."""
    flip = 56 * side
    if king_square(pos, side) & 4 != 0:
        flip ^= 7
    return flip + 1


@kernel(i64(Tables, i64, i64, i64, i64))
def _row(tb, code, square, side, flip):
    """Return the address of the row for a man."""
    feature = 384 * ((code >> 3) ^ side) + 64 * ((code & 7) - 1) + (square ^ flip)
    return address(tb) + feature * _ROW_BYTES


@kernel(void(Tables, Position, i64))
def prefetch_rows(tb, pos, square):
    """Start loading both sides' rows for the man on a square, who has just moved there: few of all rows fit into the
    nearest caches."""
    for side in range(2):
        row = _row(tb, np.int64(pos.board[square]), square, side, _view(pos, side) - 1)
        for offset in range(0, _ROW_BYTES, 64):
            prefetch(row + offset)


@kernel(i64(Evaluation, i64))
def _slot(ev, ply):
    """Return the address of the sums of a ply."""
    return address(ev) + _SCRATCH + (ply & (ACCUMULATORS - 1)) * _ACCUMULATOR_BYTES


@kernel(void(Tables, Evaluation, Position, Accumulator, i64, i64))
def _sum_up(tb, ev, pos, target, side, flip):
    """Compute a side's sums from scratch."""
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
    """Compute a side's sums from those of a board with the same view that differs on some squares."""
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


@kernel(void(Tables, Position, Accumulator, Accumulator, i64, i64, i64, i64))
def _sum_move(tb, pos, source, target, side, flip, origin, to):
    """Compute a side's sums from those of the board before a move that changed these two squares only."""
    sums = _SUMS + side * _ROW_BYTES
    taken = np.int64(source.board[to])
    _move_rows(
        address(target) + sums,
        address(source) + sums,
        _row(tb, np.int64(pos.board[to]), to, side, flip),
        _row(tb, np.int64(source.board[origin]), origin, side, flip),
        _row(tb, taken, to, side, flip) if taken != 0 else 0,
    )


@kernel(i64(Evaluation, Position, i64))
def _nearest(ev, pos, ply):
    """Return the address of the sums of this ply or the two before whose board differs least."""
    board = address(pos) + _BOARD
    best = _slot(ev, ply - 1)
    least = popcount(differing_bytes(board, best))
    for near in (ply, ply - 2):
        if least > 4:  # a move changes at most four squares
            other = _slot(ev, near)
            differing = popcount(differing_bytes(board, other))
            if differing < least:
                least = differing
                best = other
    return best


@kernel(i64(Tables, Position, i64, i64))
def _sum_of(tb, pos, side, unit):
    """Compute one of a side's sums by its definition."""
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
    """Tell whether sums that were updated are those of the position."""
    for side in range(2):
        for unit in range(NETWORK_HIDDEN):
            if target.sums[side, unit] != _sum_of(tb, pos, side, unit):
                return False
    return True


@kernel(i64(Tables, Evaluation, Position, i64))
def network_value(tb, ev, pos, ply):
    """Return the network's value of a position, in centipawns for the side to move.

    ev: memory private to the worker; ply: place in the ring for the sums, near those of similar boards.
    """
    target = accumulator_at(_slot(ev, ply))
    source = accumulator_at(_nearest(ev, pos, ply))
    changed_bb = differing_bytes(address(pos) + _BOARD, address(source))
    changes = popcount(changed_bb)
    men = popcount(occupied(pos))
    is_far = changes > men
    # usually one man has gone from a square to another
    to = lowest_bit(changed_bb | _LAST_SQUARE)
    origin = lowest_bit(changed_bb & (changed_bb - np.uint64(1)) | _LAST_SQUARE)
    if pos.board[to] == 0:
        to, origin = origin, to
    has_moved = changes == 2 and pos.board[to] != 0 and pos.board[origin] == 0
    for side in range(2):
        view = _view(pos, side)
        if is_far or source.views[side] != view:
            _sum_up(tb, ev, pos, target, side, view - 1)
        elif has_moved:
            _sum_move(tb, pos, source, target, side, view - 1, origin, to)
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
