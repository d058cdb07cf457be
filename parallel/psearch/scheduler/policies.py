"""Kernels of the package's policies, which `policy.py` calls: when a node opens, its priority, the types of children.

- `serial` opens no nodes, and `lazy` and `abdada` do not split: they need no kernels here. Claims (`claims.py`) let
  ABDADA's workers search different positions.
- `root` and `ybw` (young brothers wait, Feldmann 1993) open the root, or any node, once its first move is done.
- `knuth` derives types from topology alone (Knuth and Moore 1975): the root is PV; the first child of PV is PV, its
  other children are CUT; children of CUT are ALL; children of ALL are CUT.
- `garms` (Onno) is like Knuth's, but only the first child of a CUT node is ALL, the others are CUT; a PV child searched
  with a scout is CUT and becomes PV when it is searched again; after a null move the child is CUT. Nodes of expected
  type ALL open on entry, PV nodes once their first move is done. All other policies use these rules as defaults.
- `kannan`: every candidate cutoff move of a CUT node (null move, table move, captures, killers) leads to ALL; after
  these the node has become ALL and its children are CUT. A CUT node opens, too, once its candidates and one more move
  are done. Under every policy nodes also have a type by this rule, `kannan_type`, which steers reductions, so that all
  policies search the same tree.
- `felten` (Felten and Otto 1988) has Kannan's types, but a bound in the table overrides them.
- `calibrated` has Kannan's types, corrected by counted outcomes: a node opens if its next move is probably needed and
  its subtree is big enough.
"""

import numpy as np

from psearch.scheduler.prediction import expected_gain, finished_moves, join_cost, p_next_move_needed, subtree_size
from psearch.scheduler.words import idle_workers
from psearch_core.constants import ALL_NODE, BOUND_LOWER, BOUND_UPPER, CUT_NODE, PV_NODE, VISIT_FULL
from psearch_core.game import PICK_QUIETS
from psearch_core.records import CERTAIN
from psearch_core.toolchain.jit import kernel
from psearch_core.views import Context, Node, boolean, header_of, i64

GAIN_BUSY = 64
"""Least expected gain, in costs of a join, at which a node opens while all workers are busy."""
GAIN_IDLE = 2
"""Least size of a move, in costs of a join, at which a node opens while a worker is idle. A join also costs the node's
owner time, for the lock and for cache lines that the helper has written."""
_UNPROVED_SHIFT = 4
"""Shift that reduces the priority of a node without finished moves to 1/16. Its first move may still cut, and parallel
moves cannot use each other's refutations, so helpers should join it only if they find nothing else."""
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
    """Tell whether a node of this expected type opens by Kannan's rule."""
    if expected == ALL_NODE:
        return True
    if expected == PV_NODE:
        return node.moves_done >= 1
    return expected == CUT_NODE and node.moves_done >= 1 and node.stage >= PICK_QUIETS


@kernel(boolean(Context, Node))
def calibrated_may_open(ctx, node):
    """Tell whether a node opens: a PV node once its first move is done, any other node if its next move is probably
    needed and big enough to pay for a join; the conditions are weaker while a worker is idle.

    Workers change the number of idle workers all the time, so it is read only if the result depends on it.
    """
    if node.split_type == PV_NODE:
        return node.moves_done >= 1
    options = header_of(ctx).options
    join = join_cost(ctx)
    size = subtree_size(ctx, node)
    if size < GAIN_IDLE * join:
        return False  # the cheapest test, and true of most nodes
    p = p_next_move_needed(ctx, node)
    while_idle = p * 100 >= options.open_idle * CERTAIN
    while_busy = p * 100 >= options.open_busy * CERTAIN and size * p >> 16 >= GAIN_BUSY * join
    if while_idle == while_busy:
        return while_idle
    return while_idle if idle_workers(ctx) > 0 else while_busy


# -- the priority of an open node -----------------------------------------------------------------------------------


@kernel(i64(Node))
def garms_priority(node):
    """Return a priority by depth, so that helpers stay busy longer, then by type: ALL nodes expect no cutoff."""
    return 2 * node.depth + (1 if node.split_type == ALL_NODE else 0)


@kernel(i64(Context, Node))
def calibrated_priority(ctx, node):
    """Return the expected number of useful nodes, reduced while no move is finished."""
    gain = expected_gain(ctx, node)
    if finished_moves(node) == 0:
        gain >>= _UNPROVED_SHIFT
    return min(max(gain, np.int64(1)), _MAX_PRIORITY)


# -- the type of a child, for `child_type_by` of `policy.py` --------------------------------------------------------


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
    """Return CUT for a lower bound in the table, ALL for an upper bound, else the type by Kannan's rule."""
    if node.split_type != PV_NODE:
        if node.tt_bound == BOUND_LOWER:
            return CUT_NODE
        if node.tt_bound == BOUND_UPPER:
            return ALL_NODE
    return node.split_type
