"""Exercise 6: the first move alone and small nodes never; an ALL node early while several workers are idle."""

from psearch.own_policy import ALL_NODE, idle_workers, may_open, open_priority, replaces

IDLE = 5
"""Idle workers from which an ALL node does not wait for its first move."""


@replaces(may_open)
def large_and_tested(ctx, node, ply):
    if node.moves_done >= 1:
        return node.depth >= 2
    return node.depth >= 3 and node.split_type == ALL_NODE and idle_workers(ctx) >= IDLE


@replaces(open_priority)
def largest_first_tested_before(ctx, node):
    return max(2 * node.depth + (1 if node.moves_done >= 1 else 0), 1)
