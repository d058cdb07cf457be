"""A split policy of one's own: others may join a node once enough of its moves are done.

psearch --policy my_policy.py --threads 2 startpos
"""

from psearch.own_policy import (
    ALL_NODE,
    CUT_NODE,
    Context,
    Node,
    boolean,
    child_type,
    idle_workers,
    kernel,
    may_open,
    open_priority,
    replaces,
)

LARGE = 5
"""Depth from which a node has to wait for its second move, too."""


@kernel(boolean(Context, Node))
def has_waited(ctx, node):
    wanted = 2 if node.depth >= LARGE and node.split_type == CUT_NODE else 1
    return node.moves_done >= wanted


@replaces(may_open)
def open_when_waited(ctx, node, ply):
    """While a worker has nothing to do, the usual policy is asked, too."""
    return has_waited(ctx, node) or (idle_workers(ctx) > 0 and may_open(ctx, node, ply))


@replaces(open_priority)
def deepest_first(ctx, node):
    """Of all open nodes, workers look for the biggest."""
    return 2 * node.depth + (1 if node.split_type == ALL_NODE else 0)


@replaces(child_type)
def as_knuth(ctx, node, index, picked, stage):
    """Below a node where some move cuts, expect every child to need all its moves."""
    return ALL_NODE if node.split_type == CUT_NODE else child_type(ctx, node, index, picked, stage)
