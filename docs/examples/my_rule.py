"""A rule of one's own: moves that break a principle of the opening books are searched less deep.

psearch --with my_rule.py startpos
"""

from psearch.own_rule import (
    count_pruned,
    count_tried,
    is_quiet,
    move_from,
    reduction_of,
    replaces,
)

DEPTH = 5
"""Depth from which there are plies to take off."""


@replaces(reduction_of)
def not_the_same_piece_twice(ctx, wk, pos, node, visit, gives):
    """A late quiet move of the piece that has moved just before is reduced by a ply more."""
    reduction = reduction_of(ctx, wk, pos, node, visit, gives)
    if reduction == 0 or node.depth < DEPTH or not is_quiet(pos, visit.move):
        return reduction
    count_tried(wk)
    stands_on = node.cont_2 & 63  # the lower six bits say where the last move of this side went
    if node.cont_2 == 0 or move_from(visit.move) != stands_on:
        return reduction
    count_pruned(wk)
    return reduction + 1
