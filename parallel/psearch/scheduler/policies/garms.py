"""Types by Garms' rule (Onno), and what policies do that say nothing else.

As Knuth's, but only the first child of a CUT node is ALL, the further ones are CUT again; a PV child searched with a
scout is CUT and becomes PV when it is searched again; after a null move CUT. Nodes that are expected to be ALL open on
entry, PV nodes once their first move is done.
"""

from __future__ import annotations

from psearch_core.constants import ALL_NODE, CUT_NODE, PV_NODE, VISIT_FULL
from psearch_core.toolchain.jit import kernel
from psearch_core.views import Context, Node, boolean, i64


@kernel(boolean(Context, Node, i64))
def may_open(ctx, node, ply):
    """See `psearch.scheduler.policy.may_open`."""
    if node.split_type == PV_NODE:
        return node.moves_done >= 1
    return node.split_type == ALL_NODE


@kernel(i64(Context, Node))
def open_priority(ctx, node):
    """Return more for bigger subtrees, which keep a helper busy for longer, and among equals for ALL nodes, where no
    cutoff threatens."""
    return 2 * node.depth + (1 if node.split_type == ALL_NODE else 0)


@kernel(i64(i64, i64, i64, i64))
def child_type(parent, index, picked, stage):
    """See `psearch.scheduler.policy.child_type_by`."""
    if parent == PV_NODE:
        return PV_NODE if stage == VISIT_FULL else CUT_NODE
    if parent == ALL_NODE:
        return CUT_NODE
    return ALL_NODE if index == 0 else CUT_NODE
