"""The type a node is expected to have, before it is searched.

- Knuth and Moore (1975): the root is PV; the first child of PV is PV, its others CUT; children of CUT are ALL;
  children of ALL are CUT. By topology alone.
- Garms (Onno): the same, but only the first child of a CUT node is ALL, the further ones are CUT again; a PV child
  searched with a scout is CUT and becomes PV when it is searched again; after a null move CUT.
- Felten and Otto (1988): a table entry for the node knows better: a lower bound says CUT, an upper bound ALL.
- Kannan: every candidate cutoff move of a CUT node (null move, table move, captures, killers) leads to ALL; once they
  are exhausted the node has become ALL and its children are CUT.

A node has two types: `split_type`, by the rule of the policy, steers when nodes open; `kannan_type`, by Kannan's rule
under every policy, steers reductions, so that the policies search the same tree. Both are set before a node is entered
and only read while it is open.
"""

from __future__ import annotations

from psearch.core.chess.ordering.movepick import PICK_QUIETS
from psearch.core.constants import ALL_NODE, BOUND_LOWER, BOUND_UPPER, CUT_NODE, PV_NODE, VISIT_FULL
from psearch.core.toolchain.jit import kernel
from psearch.core.views import Node, boolean, i64
from psearch.scheduler.policy import POLICY_CALIBRATED, POLICY_FELTEN, POLICY_KANNAN, POLICY_KNUTH


@kernel(boolean(i64))
def follows_kannan(policy):
    """Tell whether the policy's classes are Kannan's; felten and calibrated refine them."""
    return policy in (POLICY_KANNAN, POLICY_FELTEN, POLICY_CALIBRATED)


@kernel(i64(i64, Node))
def refined_type(policy, node):
    """Return the type once the table has been probed."""
    if policy == POLICY_FELTEN and node.split_type != PV_NODE:
        if node.tt_bound == BOUND_LOWER:
            return CUT_NODE
        if node.tt_bound == BOUND_UPPER:
            return ALL_NODE
    return node.split_type


@kernel(i64(i64, i64, i64, i64, i64))
def child_type(policy, parent, index, picked, stage):
    """Return type of the child reached by move number `index` (from 0) of a node of type `parent`, searched with a
    scout or the full window. picked: the stage of the move picker that gave the move."""
    if parent == PV_NODE:
        return PV_NODE if stage == VISIT_FULL else CUT_NODE
    if parent == ALL_NODE:
        return CUT_NODE
    if policy == POLICY_KNUTH:
        return ALL_NODE
    if follows_kannan(policy):
        return ALL_NODE if index == 0 or picked < PICK_QUIETS else CUT_NODE
    return ALL_NODE if index == 0 else CUT_NODE


@kernel(i64(i64, i64))
def null_child_type(policy, parent):
    """Return type of the child after a null move at a node of type `parent`."""
    return ALL_NODE if follows_kannan(policy) and parent == CUT_NODE else CUT_NODE
