"""The package's policies: the kernels in which they differ. `policy.py` calls them; a file with a policy of the user's
has kernels of the same kinds: when a node opens, what it is worth, and the type that a child is expected to have.

- `serial` opens nothing, and `lazy` and `abdada` split nothing: none of them needs a kernel here. Claims (`claims.py`)
  keep ABDADA's workers apart.
- `root` and `ybw` (young brothers wait, Feldmann 1993) open the root, or any node, once its first move is done.
- `knuth` has types by topology alone (Knuth and Moore 1975): the root is PV; the first child of PV is PV, its others
  CUT; children of CUT are ALL; children of ALL are CUT.
- `garms` (Onno): as Knuth's, but only the first child of a CUT node is ALL, the further ones are CUT again; a PV child
  searched with a scout is CUT and becomes PV when it is searched again; after a null move CUT. Nodes that are expected
  to be ALL open on entry, PV nodes once their first move is done. What other policies leave out is as here.
- `kannan`: every candidate cutoff move of a CUT node (null move, table move, captures, killers) leads to ALL; once they
  are exhausted the node has become ALL and its children are CUT. CUT nodes open, too, once their candidates and one
  move more are done. Under every policy nodes have a type by this rule, `kannan_type`, by which moves are reduced: so
  all search the same tree.
- `felten` (Felten and Otto 1988): Kannan's types, but a table entry knows better.
- `calibrated`: Kannan's types, corrected by what was counted: a node opens when its next move is probably needed and
  big enough.
"""

from __future__ import annotations

import numpy as np

from psearch.scheduler.prediction import expected_gain, finished_moves, join_cost, p_next_move_needed, subtree_size
from psearch.scheduler.words import idle_workers
from psearch_core.constants import ALL_NODE, BOUND_LOWER, BOUND_UPPER, CUT_NODE, PV_NODE, VISIT_FULL
from psearch_core.game import PICK_QUIETS
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

# -- when a node opens ----------------------------------------------------------------------------------------------


@kernel(boolean(Node))
def garms_may_open(node):
    """Tell whether a node opens: an ALL node at once, a PV node once its first move is done."""
    if node.split_type == PV_NODE:
        return node.moves_done >= 1
    return node.split_type == ALL_NODE


@kernel(boolean(Node, i64))
def opens_as(node, expected):
    """Tell whether a node opens by Kannan's rule if this is its type."""
    if expected == ALL_NODE:
        return True
    if expected == PV_NODE:
        return node.moves_done >= 1
    return expected == CUT_NODE and node.moves_done >= 1 and node.stage >= PICK_QUIETS


@kernel(boolean(Context, Node))
def calibrated_may_open(ctx, node):
    """Tell whether a node opens: a PV node once its first move is done, any other if its next move is probably needed
    and worth some joins; less of both while a worker is idle.

    Whether one is, others write all the time: it is asked only where the answer depends on it.
    """
    if node.split_type == PV_NODE:
        return node.moves_done >= 1
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


# -- what an open node is worth to a helper -------------------------------------------------------------------------


@kernel(i64(Node))
def garms_priority(node):
    """Return more for bigger subtrees, which keep a helper busy for longer, and among equals for ALL nodes, where no
    cutoff threatens."""
    return 2 * node.depth + (1 if node.split_type == ALL_NODE else 0)


@kernel(i64(Context, Node))
def calibrated_priority(ctx, node):
    """Return the useful nodes to expect, less while no move is finished."""
    gain = expected_gain(ctx, node)
    if finished_moves(node) == 0:
        gain >>= _UNPROVED_SHIFT
    return min(max(gain, np.int64(1)), _MAX_PRIORITY)


# -- the type of a child, as `child_type_by` of `policy.py` asks for it ---------------------------------------------


@kernel(i64(i64, i64))
def knuth_child_type(parent, stage):
    """Return the type of a child by topology alone."""
    if parent == PV_NODE:
        return PV_NODE if stage == VISIT_FULL else CUT_NODE
    return CUT_NODE if parent == ALL_NODE else ALL_NODE


@kernel(i64(i64, i64, i64))
def garms_child_type(parent, index, stage):
    """Return the type of a child by Garms' rule: only the first child of a CUT node is ALL."""
    return CUT_NODE if parent == CUT_NODE and index > 0 else knuth_child_type(parent, stage)


@kernel(i64(i64, i64, i64, i64))
def kannan_child_type(parent, index, picked, stage):
    """Return the type of a child by Kannan's rule: every candidate for a cutoff at a CUT node leads to ALL."""
    return CUT_NODE if parent == CUT_NODE and index > 0 and picked >= PICK_QUIETS else knuth_child_type(parent, stage)


@kernel(i64(i64))
def kannan_null_child_type(parent):
    """Return the type of the child after a null move at a node of type `parent`."""
    return ALL_NODE if parent == CUT_NODE else CUT_NODE


@kernel(i64(Node))
def felten_type(node):
    """Return CUT for a lower bound found in the table, ALL for an upper one, else the type by the rule."""
    if node.split_type != PV_NODE:
        if node.tt_bound == BOUND_LOWER:
            return CUT_NODE
        if node.tt_bound == BOUND_UPPER:
            return ALL_NODE
    return node.split_type
