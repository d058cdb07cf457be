"""Kannan's types, but a table entry knows better (Felten and Otto 1988). The rest: `kannan.py`."""

from __future__ import annotations

from psearch_core.constants import ALL_NODE, BOUND_LOWER, BOUND_UPPER, CUT_NODE, PV_NODE
from psearch_core.toolchain.jit import kernel
from psearch_core.views import Node, i64


@kernel(i64(Node))
def refined_type(node):
    """Return CUT for a lower bound found in the table, ALL for an upper one, else the type by the rule."""
    if node.split_type != PV_NODE:
        if node.tt_bound == BOUND_LOWER:
            return CUT_NODE
        if node.tt_bound == BOUND_UPPER:
            return ALL_NODE
    return node.split_type
