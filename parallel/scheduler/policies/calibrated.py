"""Kannan's types, corrected by what was counted: a node opens when its next move is probably needed and big enough."""

from __future__ import annotations

import numpy as np

from psearch.core.constants import PV_NODE
from psearch.core.records import CERTAIN, DEPTHS
from psearch.core.toolchain.jit import kernel
from psearch.core.views import Context, Node, boolean, header_of, i64, void
from psearch.scheduler.prediction import expected_gain, finished_moves, join_cost, p_next_move_needed
from psearch.scheduler.words import idle_workers

GAIN_BUSY = 64
"""While all are busy: the expected gain, in joins, from which a node opens. A worker that is already idle has nothing
better to do than to join, so while there is one no gain is too small."""
_UNPROVED_SHIFT = 4
"""A node none of whose moves is finished is offered for 1/16 of its gain. Its first move may still cut, and its
successors search blind to each other's refutations: a reserve for helpers that find nothing else."""
_MAX_PRIORITY = (1 << 30) - 1


@kernel(boolean(Context, Node))
def _is_worth_opening(ctx, node):
    """Probably needed and worth some joins; while a worker is idle, only the former, and less of it."""
    hd = header_of(ctx)
    if idle_workers(ctx) > 0:
        return p_next_move_needed(ctx, node) * 100 >= hd.options.open_idle * CERTAIN
    if node.depth < hd.prediction.least_depth:
        return False  # so it is with most nodes, and this costs least to see
    if p_next_move_needed(ctx, node) * 100 < hd.options.open_busy * CERTAIN:
        return False
    return expected_gain(ctx, node) >= GAIN_BUSY * join_cost(ctx)


@kernel(boolean(Context, Node, i64))
def may_open(ctx, node, ply):
    """See `psearch.scheduler.policy.may_open`."""
    if node.split_type == PV_NODE:
        return node.moves_done >= 1
    return _is_worth_opening(ctx, node)


@kernel(i64(Context, Node))
def open_priority(ctx, node):
    """Return the useful nodes to expect, less while no move is finished."""
    gain = expected_gain(ctx, node)
    if finished_moves(node) == 0:
        gain >>= _UNPROVED_SHIFT
    return min(max(gain, np.int64(1)), _MAX_PRIORITY)


@kernel(void(Context))
def find_least_depth(ctx):
    """Find the least depth at which a move is big enough for `GAIN_BUSY` joins if it is needed for certain."""
    prediction = header_of(ctx).prediction
    depth = np.int64(1)
    while depth < DEPTHS and prediction.size[depth - 1] < GAIN_BUSY * join_cost(ctx):
        depth += 1
    prediction.least_depth = depth
