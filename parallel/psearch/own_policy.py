# ruff: noqa: F401  # what is imported here is for the files that import it from here
# mypy: implicit-reexport
"""What a file with a split policy of one's own imports; see docs/guides/own-policy.md.

A policy is a file of kernels that stand in for hooks of `psearch.scheduler.policy`: each is marked `@replaces(HOOK)`
and called in place of that hook, with the same arguments. What the file leaves out is as with `calibrated`, and so is
what a stand-in gets when it calls the hook itself. Kernels are compiled by numba; only code of the file itself runs
beside them.

Hooks: `may_open`, `open_priority`, `child_type`, `null_child_type`, `refined_type`, `splits_nothing`, `skips_depth`,
`claim_depth`; their docstrings say what each is asked. To go by: the fields of a node
(`psearch_core/records/node_record.py`), and the functions from `prediction` and `words`
below. A file may have memory of its own, that all workers share: see `word`.
"""

from psearch.scheduler.policy import (
    child_type,
    claim_depth,
    may_open,
    null_child_type,
    open_priority,
    refined_type,
    skips_depth,
    splits_nothing,
)
from psearch.scheduler.prediction import (
    expected_gain,
    finished_moves,
    join_cost,
    p_next_move_needed,
    subtree_size,
)
from psearch.scheduler.words import idle_workers, word
from psearch_core.constants import ALL_NODE, CUT_NODE, PV_NODE, VISIT_FULL
from psearch_core.game import PICK_QUIETS
from psearch_core.records import CERTAIN
from psearch_core.toolchain.intrinsics import atomic_add, atomic_load, atomic_store
from psearch_core.toolchain.jit import kernel, replaces
from psearch_core.views import Context, Node, boolean, header_of, i64

__all__ = [name for name in dir() if not name.startswith("_")]
