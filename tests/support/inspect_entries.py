"""A group of kernels for tests that look into single ones: `inspect_node`, `inspect_position` (moves, attacks),
`inspect_pruning` (the decisions of selective search), and the negamax of `naive`, to compare with."""

from __future__ import annotations

from psearch_core.toolchain.groups import Group

INSPECT = Group("inspect", "inspect_node", "inspect_position", "inspect_pruning", "naive")
