"""Exercise 4: types by topology alone; ALL nodes are shared at once, PV nodes after their first move."""

from psearch.own_policy import (
    ALL_NODE,
    CUT_NODE,
    PV_NODE,
    VISIT_FULL,
    child_type,
    may_open,
    null_child_type,
    open_priority,
    replaces,
)


@replaces(child_type)
def by_topology(ctx, node, index, picked, stage):
    if node.split_type == PV_NODE:
        return PV_NODE if stage == VISIT_FULL else CUT_NODE
    return CUT_NODE if node.split_type == ALL_NODE else ALL_NODE


@replaces(null_child_type)
def cut(ctx, node):
    return CUT_NODE


@replaces(may_open)
def by_type(ctx, node, ply):
    return node.split_type == ALL_NODE or (node.split_type == PV_NODE and node.moves_done >= 1)


@replaces(open_priority)
def largest_first(ctx, node):
    return 2 * node.depth + (1 if node.split_type == ALL_NODE else 0)
