"""A group of kernels for tests that look into single ones; what it has is in `inspect_node`, `inspect_position` (moves,
attacks), `inspect_pruning` (the decisions of selective search), `inspect_windows` (windows of the root) and
`inspect_naive` (negamax, to compare with)."""

from __future__ import annotations

from psearch_core.toolchain.groups import Group

INSPECT = Group(
    "inspect",
    "inspect_naive",
    "inspect_network",
    "inspect_node",
    "inspect_position",
    "inspect_pruning",
    "inspect_windows",
)
