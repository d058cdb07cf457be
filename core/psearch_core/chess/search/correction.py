"""Correction of the static evaluation by what searches have found before.

If the value of a search differs from the static evaluation, and a quiet move or none decided it, the difference is
learnt for these pawns, these pieces of each colour, and the last two moves. They recur in many positions, and the
evaluation is mostly wrong in the same direction in all of them (correction history, as in Caissa and Stockfish).

All workers share the tables without locks, like the histories; a lost update changes a correction a little
(docs/decisions/004). An entry that does not change is not written, so that its cache line stays shared.
"""

import numpy as np

from psearch_core.arithmetic import clear_of_mates, is_mate_bound
from psearch_core.chess.evaluation.endgames import known_scale_of, scaled
from psearch_core.chess.ordering.history import is_quiet, towards
from psearch_core.constants import BISHOP, BOUND_LOWER, BOUND_UPPER, KING, KNIGHT, NO_MOVE, NO_SCORE, PAWN, QUEEN, ROOK
from psearch_core.records.header import CORRECTIONS, learning_dtype
from psearch_core.records.layout import offset_of
from psearch_core.toolchain.intrinsics import address, check, prefetch
from psearch_core.toolchain.jit import kernel
from psearch_core.views import Learning, Node, Position, PruningRecord, Tables, i64, void

_BITS = CORRECTIONS.bit_length() - 1
_TOP = np.uint64(64 - _BITS)
_HALF = np.uint64(32)
_PAWNS, _PIECES, _MOVES = (offset_of(learning_dtype, f"{name}_correction") for name in ("pawn", "piece", "move"))
_LIMIT_SHIFT = 10
_LIMIT = 1 << _LIMIT_SHIFT
"""Greatest entry, at which the correction is the full number of centipawns of its parameter."""
_MOST_AT_ONCE = _LIMIT // 4
# Odd constants (fractions of the golden ratio and of square roots), so that the highest bits of a product depend on all
# squares
_MIX_1 = np.uint64(0x9E3779B97F4A7C15)
_MIX_2 = np.uint64(0xC2B2AE3D27D4EB4F)
_MIX_3 = np.uint64(0x6A09E667F3BCC909)
_MIX_4 = np.uint64(0xBB67AE8584CAA73B)
_MIX_5 = np.uint64(0x3C6EF372FE94F82B)


@kernel(i64(Position))
def _pawn_slot(pos):
    """Return a hash of the pawns."""
    pawns_bb = pos.piece_bb[PAWN]
    mixed = ((pawns_bb & pos.color_bb[0]) * _MIX_1) ^ ((pawns_bb & pos.color_bb[1]) * _MIX_2)
    return np.int64(mixed >> _TOP)


@kernel(i64(Position, i64))
def _piece_slot(pos, colour):
    """Return a hash of the pieces of a colour."""
    own_bb = pos.color_bb[colour]
    mixed = (
        (pos.piece_bb[KNIGHT] & own_bb) * _MIX_1
        + (pos.piece_bb[BISHOP] & own_bb) * _MIX_2
        + (pos.piece_bb[ROOK] & own_bb) * _MIX_3
        + (pos.piece_bb[QUEEN] & own_bb) * _MIX_4
        + (pos.piece_bb[KING] & own_bb) * _MIX_5
    )
    return np.int64(((mixed ^ (mixed >> _HALF)) * _MIX_1) >> _TOP)


@kernel(i64(Node))
def _move_slot(node):
    return np.int64((np.uint64(node.cont_1 | node.cont_2 << 10) * _MIX_1) >> _TOP)


@kernel(i64(PruningRecord, Learning, Position, Node))
def prefetch_corrections(pruning, learning, pos, node):
    """Start loading what `corrected` will read: four cache lines that are seldom in the processor's cache. Return their
    four slots in one word, since hashing twice takes time."""
    if not pruning.correction or node.in_check:
        return 0
    side = np.int64(pos.side)
    base = address(learning)
    pawns, moves = _pawn_slot(pos), _move_slot(node)
    white, black = _piece_slot(pos, 0), _piece_slot(pos, 1)
    prefetch(base + _PAWNS + (side * CORRECTIONS + pawns) * 2)
    prefetch(base + _PIECES + (2 * side * CORRECTIONS + white) * 2)
    prefetch(base + _PIECES + ((2 * side + 1) * CORRECTIONS + black) * 2)
    prefetch(base + _MOVES + (side * CORRECTIONS + moves) * 2)
    return pawns | white << _BITS | black << 2 * _BITS | moves << 3 * _BITS


@kernel(i64(PruningRecord, Learning, Tables, Position, i64, i64))
def corrected(pruning, learning, tb, pos, slots, value):
    """Return the corrected static evaluation of a node that is not in check. The correction is scaled like the value by
    the theory of endings, so it never puts a side ahead that cannot win. slots: from `prefetch_corrections`."""
    if not pruning.correction:
        return value
    side = pos.side
    mask = CORRECTIONS - 1
    sum = (
        pruning.correction_pawns * learning.pawn_correction[side, slots & mask]
        + pruning.correction_pieces
        * (
            learning.piece_correction[side, 0, slots >> _BITS & mask]
            + learning.piece_correction[side, 1, slots >> 2 * _BITS & mask]
        )
        + pruning.correction_moves * learning.move_correction[side, slots >> 3 * _BITS]
    )
    sum = value + scaled((sum + _LIMIT // 2) >> _LIMIT_SHIFT, known_scale_of(tb, pos, value))
    if (value < 0 < sum) or (sum < 0 < value):
        sum = scaled(sum, known_scale_of(tb, pos, sum))
    return clear_of_mates(sum)


@kernel(void(PruningRecord, Learning, Tables, Position, Node, i64))
def learn_correction(pruning, learning, tb, pos, node, bound):
    """Learn from a node's value, which is a bound of this kind, unless the evaluation agrees with the bound or the
    theory of endings makes the position a draw."""
    best = node.best
    if not pruning.correction or node.eval == NO_SCORE or is_mate_bound(best):
        return
    if (bound == BOUND_LOWER and best <= node.eval) or (bound == BOUND_UPPER and best >= node.eval):
        return
    if node.best_move != NO_MOVE and not is_quiet(pos, node.best_move):
        return
    change = min(max((best - node.eval) * node.depth // pruning.correction_slowness, -_MOST_AT_ONCE), _MOST_AT_ONCE)
    if change == 0 or known_scale_of(tb, pos, node.raw_eval) == 0:
        return
    check(abs(change) <= _MOST_AT_ONCE, "corrections change in steps")
    side = pos.side
    slot = _pawn_slot(pos)
    old = learning.pawn_correction[side, slot]
    new = towards(old, change, _LIMIT)
    if new != old:
        learning.pawn_correction[side, slot] = new
    for colour in range(2):
        slot = _piece_slot(pos, colour)
        old = learning.piece_correction[side, colour, slot]
        new = towards(old, change, _LIMIT)
        if new != old:
            learning.piece_correction[side, colour, slot] = new
    slot = _move_slot(node)
    old = learning.move_correction[side, slot]
    new = towards(old, change, _LIMIT)
    if new != old:
        learning.move_correction[side, slot] = new
