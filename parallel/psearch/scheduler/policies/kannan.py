"""Types by Kannan's rule: every candidate cutoff move of a CUT node (null move, table move, captures, killers) leads to
ALL; once they are exhausted the node has become ALL and its children are CUT.

Nodes open as with `garms.py`, and CUT nodes, too, once their candidates and one move more are done. Under every policy
nodes have a type by this rule, `kannan_type`, by which moves are reduced: so all search the same tree.
"""

from __future__ import annotations

import numpy as np

from psearch_core.constants import ALL_NODE, CUT_NODE, PV_NODE, VISIT_FULL
from psearch_core.game import PICK_QUIETS
from psearch_core.toolchain.jit import kernel
from psearch_core.views import Context, Node, boolean, i64


@kernel(boolean(Node, i64))
def opens_as(node, expected):
    """Tell whether a node opens if this is its type."""
    if expected == ALL_NODE:
        return True
    if expected == PV_NODE:
        return node.moves_done >= 1
    return expected == CUT_NODE and node.moves_done >= 1 and node.stage >= PICK_QUIETS


@kernel(boolean(Context, Node, i64))
def may_open(ctx, node, ply):
    """See `psearch.scheduler.policy.may_open`."""
    return opens_as(node, np.int64(node.split_type))


@kernel(i64(i64, i64, i64, i64))
def child_type(parent, index, picked, stage):
    """See `psearch.scheduler.policy.child_type_by`."""
    if parent == PV_NODE:
        return PV_NODE if stage == VISIT_FULL else CUT_NODE
    if parent == ALL_NODE:
        return CUT_NODE
    return ALL_NODE if index == 0 or picked < PICK_QUIETS else CUT_NODE


@kernel(i64(i64))
def null_child_type(parent):
    """Return the type of the child after a null move at a node of type `parent`."""
    return ALL_NODE if parent == CUT_NODE else CUT_NODE
