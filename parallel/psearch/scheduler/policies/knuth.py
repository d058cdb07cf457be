"""Types by topology alone (Knuth and Moore 1975): the root is PV; the first child of PV is PV, its others CUT; children
of CUT are ALL; children of ALL are CUT. The rest: `garms.py`."""

from __future__ import annotations

from psearch_core.constants import ALL_NODE, CUT_NODE, PV_NODE, VISIT_FULL
from psearch_core.toolchain.jit import kernel
from psearch_core.views import i64


@kernel(i64(i64, i64, i64, i64))
def child_type(parent, index, picked, stage):
    """See `psearch.scheduler.policy.child_type_by`."""
    if parent == PV_NODE:
        return PV_NODE if stage == VISIT_FULL else CUT_NODE
    return CUT_NODE if parent == ALL_NODE else ALL_NODE
