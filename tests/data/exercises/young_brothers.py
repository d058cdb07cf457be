"""Exercise 2: young brothers wait."""

from psearch.own_policy import ALL_NODE, may_open, open_priority, replaces


@replaces(may_open)
def wait_for_the_first(ctx, node, ply):
    return node.moves_done >= 1


@replaces(open_priority)
def largest_first(ctx, node):
    return 2 * node.depth + (1 if node.split_type == ALL_NODE else 0)
