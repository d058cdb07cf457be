"""A split policy: young brothers wait, but not for long where a subtree is small.

Try it: psearch --policy my_policy.py --threads 2 startpos
"""

from psearch.own_policy import ALL_NODE, Context, Node, boolean, idle_workers, kernel, may_open, open_priority, replaces

LARGE = 5
"""Depth from which a node waits for its second move, too, before others may join."""


@kernel(boolean(Context, Node))
def has_waited(ctx, node):
    """Tell whether enough moves of the node are done."""
    wanted = 2 if node.depth >= LARGE and node.split_type != ALL_NODE else 1
    return node.moves_done >= wanted


@replaces(may_open)
def open_when_waited(ctx, node, ply):
    """While somebody is idle the usual policy may open a node, too."""
    return has_waited(ctx, node) or (idle_workers(ctx) > 0 and may_open(ctx, node, ply))


@replaces(open_priority)
def deepest_first(ctx, node):
    """Big subtrees keep a helper busy for longer."""
    return 2 * node.depth
