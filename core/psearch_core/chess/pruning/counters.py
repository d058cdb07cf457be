"""Counts what the techniques of selective search do; `psearch_core.techniques` has their numbers."""

from psearch_core.records import OWN_RULE
from psearch_core.toolchain.jit import kernel
from psearch_core.views import Worker, i64, void


@kernel(void(Worker, i64))
def count_tried(wk, technique):
    wk.pruned[technique, 0] += 1


@kernel(void(Worker, i64))
def count_pruned(wk, technique):
    wk.pruned[technique, 1] += 1


@kernel(void(Worker))
def count_own_tried(wk):
    """Count a case that a user's rule has tried; `psearch --stats` shows the number."""
    wk.pruned[OWN_RULE, 0] += 1


@kernel(void(Worker))
def count_own_pruned(wk):
    """Count a case that a user's rule has pruned, reduced or extended."""
    wk.pruned[OWN_RULE, 1] += 1
