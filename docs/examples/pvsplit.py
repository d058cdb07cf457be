"""PV splitting (Marsland and Campbell 1982): the workers share the nodes of the principal variation, and no others.

The first move of a PV node is searched before its others are shared, so all workers meet at one node at a time and
wait there for the slowest of them. That keeps the speedup low, however many workers there are.

psearch --policy pvsplit.py --threads 2 startpos
"""

from psearch.own_policy import PV_NODE, may_open, open_priority, replaces


@replaces(may_open)
def after_the_first_move(ctx, node, ply):
    return node.split_type == PV_NODE and node.moves_done >= 1


@replaces(open_priority)
def largest_first(ctx, node):
    return max(node.depth, 1)
