"""Counting what the techniques of selective search do: numbers and meanings in `psearch.core.techniques`."""

from __future__ import annotations

from psearch.core.toolchain.jit import kernel
from psearch.core.views import Worker, i64, void


@kernel(void(Worker, i64))
def count_tried(wk, technique):
    wk.pruned[technique, 0] += 1


@kernel(void(Worker, i64))
def count_pruned(wk, technique):
    wk.pruned[technique, 1] += 1
