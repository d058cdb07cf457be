"""When a node is opened to helpers, and how much an open node is worth.

Every policy runs in the same frame with everything else equal; they differ in how types are predicted
(`nodetypes.py`) and in the moment a node of a type opens.
"""

from __future__ import annotations

from psearch.core.constants import ALL_NODE, CUT_NODE, PV_NODE
from psearch.core.jit import kernel
from psearch.core.movepick import PICK_QUIETS
from psearch.core.records import Node, boolean, i64

POLICY_SERIAL, POLICY_YBW, POLICY_KNUTH, POLICY_GARMS, POLICY_KANNAN = range(5)

POLICIES = {
    "serial": POLICY_SERIAL,
    "ybw": POLICY_YBW,
    "knuth": POLICY_KNUTH,
    "garms": POLICY_GARMS,
    "kannan": POLICY_KANNAN,
}
"""serial: nothing is opened. ybw: any node once its first move is done. knuth, garms, kannan: predicted ALL nodes on
entry, PV nodes once their first move is done; kannan also CUT nodes whose candidate cutoff moves are exhausted."""


@kernel(boolean(i64, i64, Node))
def may_open(policy, split_depth, node):
    """Whether a node that is not open opens before its next move is taken."""
    if policy == POLICY_SERIAL or node.depth < split_depth:
        return False
    if policy == POLICY_YBW or node.type == PV_NODE:
        return node.moves_done >= 1
    if node.type == ALL_NODE:
        return True
    return policy == POLICY_KANNAN and node.type == CUT_NODE and node.moves_done >= 1 and node.stage >= PICK_QUIETS


@kernel(i64(Node))
def open_priority(node):
    """Bigger subtrees first: they keep a helper busy for longer. Among equals ALL nodes, where no cutoff threatens."""
    return 2 * node.depth + (1 if node.type == ALL_NODE else 0)
