"""Kannan's types, corrected by what was counted: a node opens when its next move is probably needed and big enough."""

from __future__ import annotations

import numpy as np

from psearch.scheduler.prediction import expected_gain, finished_moves, join_cost, p_next_move_needed, subtree_size
from psearch.scheduler.words import idle_workers
from psearch_core.constants import PV_NODE
from psearch_core.records import CERTAIN
from psearch_core.toolchain.jit import kernel
from psearch_core.views import Context, Node, boolean, header_of, i64

GAIN_BUSY = 64
"""While all are busy: the expected gain, in joins, from which a node opens."""
GAIN_IDLE = 2
"""While a worker is idle: the size of a move, in joins. It has nothing better to do than to join, but the node's owner
pays, too: for the lock, and for cache lines that the helper has written."""
_UNPROVED_SHIFT = 4
"""A node none of whose moves is finished is offered for 1/16 of its gain. Its first move may still cut, and its
successors search blind to each other's refutations: a reserve for helpers that find nothing else."""
_MAX_PRIORITY = (1 << 30) - 1


@kernel(boolean(Context, Node))
def _is_worth_opening(ctx, node):
    """Probably needed and worth some joins; less of both while a worker is idle.

    Whether one is, others write all the time: it is asked only where the answer depends on it.
    """
    options = header_of(ctx).options
    join = join_cost(ctx)
    size = subtree_size(ctx, node)
    if size < GAIN_IDLE * join:
        return False  # so it is with most nodes, and this costs least to see
    p = p_next_move_needed(ctx, node)
    while_idle = p * 100 >= options.open_idle * CERTAIN
    while_busy = p * 100 >= options.open_busy * CERTAIN and size * p >> 16 >= GAIN_BUSY * join
    if while_idle == while_busy:
        return while_idle
    return while_idle if idle_workers(ctx) > 0 else while_busy


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
