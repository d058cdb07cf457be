# ruff: noqa: F401  # the names are imported here for the files that import them from here
# mypy: implicit-reexport
"""Names that the file of your own split policy imports; see docs/guides/own-policy.md.

A policy is a file of kernels that replace hooks of `psearch.scheduler.policy`: each is marked `@replaces(HOOK)` and
called in place of that hook, with the same arguments. Hooks that the file does not replace behave as in the policy
`calibrated`; a replacement that calls its own hook gets the answer of `calibrated`. Kernels are compiled by numba; only
the file's own code runs beside them.

Hooks: `may_open`, `open_priority`, `child_type`, `null_child_type`, `refined_type`, `splits_nothing`, `skips_depth`,
`claim_depth`; their docstrings say what each decides. A kernel can use the fields of a node
(`psearch_core/records/node_record.py`) and the functions imported below. A policy may have its own memory, which all
workers share: see `word`.
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
