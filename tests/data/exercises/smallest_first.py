"""Exercise 3: young brothers wait, and an idle worker joins the smallest node."""

from psearch.own_policy import may_open, open_priority, replaces


@replaces(may_open)
def young_brothers_wait(ctx, node, ply):
    return node.moves_done >= 1


@replaces(open_priority)
def smallest_first(ctx, node):
    return max(100 - node.depth, 1)
