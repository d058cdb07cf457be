"""Jamboree search (Kuszmaul 1994) with a sequential cut-off: test the first move alone, then all others at once.

A node does not wait for a type: once its first move has a value, the others are tested at the same time with null
windows, and a test that fails high is searched again with the whole window. Small subtrees are not shared, since a join
costs more than it gains there. An idle worker takes from the node nearest to the root, as work stealing does.

One thing differs from the paper: there the second searches of a node wait for each other, here only a better value
found meanwhile narrows their windows.

psearch --policy jamboree.py --threads 2 startpos
"""

from psearch.own_policy import may_open, open_priority, replaces

CUT_OFF = 3
"""Depth in plies below which a node belongs to one worker."""


@replaces(may_open)
def after_the_first_test(ctx, node, ply):
    return node.depth >= CUT_OFF and node.moves_done >= 1


@replaces(open_priority)
def nearest_to_the_root(ctx, node):
    return max(node.depth, 1)
