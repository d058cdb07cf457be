"""Selects the next move of a node: the loop that picks and prunes, the same under every policy.

This is step 7 of a node. The picker's state is part of the node, so any worker that holds the lock of an open node can
continue where the last one stopped.
"""

import numpy as np

from psearch_core.chess.board.movegen import count_legal
from psearch_core.chess.board.position import likely_key
from psearch_core.chess.ordering.movepick import pick_move
from psearch_core.chess.pruning.sound import skips_soundly
from psearch_core.chess.search.decisions import prunes_move
from psearch_core.chess.search.tt import prefetch_entry
from psearch_core.constants import MATE_IN_MAX_PLY, NO_MOVE, PASS_PROBCUT
from psearch_core.records import MAX_MOVES, MAX_PLY
from psearch_core.toolchain.intrinsics import check
from psearch_core.toolchain.jit import kernel
from psearch_core.views import Context, Node, Position, Tables, Worker, boolean, header_of, i64, tables_of

DEFERRED = 1 << 16
"""Flag in the result of `next_move`: the move was deferred once, and must be searched now."""
_MOST_DEFERRED = 32


@kernel(boolean(Tables, Position, Node, i64))
def defer_move(tb, pos, node, move):
    """Take back a move of the node, to be searched last; False if there is no room. Called under the lock once open.

    Deferred moves wait at the end of the move list; before them all legal moves must have room.
    """
    return node.deferred < _MOST_DEFERRED and put_back(node, count_legal(tb, pos), move)


@kernel(boolean(Node, i64, i64))
def put_back(node, listed, move):
    """Keep a move at the end of the list, whose beginning needs room for `listed` moves; False if there is none."""
    if node.deferred == _MOST_DEFERRED or listed + node.deferred >= MAX_MOVES:
        return False
    node.deferred += 1
    node.moves[MAX_MOVES - node.deferred] = move
    node.moves_done -= 1
    return True


@kernel(i64(Node))
def take_deferred(node):
    """Return the move that was deferred first, with `DEFERRED`; NO_MOVE if none is left."""
    if node.deferred == 0:
        return NO_MOVE
    # the first one is at the end: take it and move the others up
    move = node.moves[MAX_MOVES - 1] | DEFERRED
    for i in range(1, node.deferred):
        node.moves[MAX_MOVES - i] = node.moves[MAX_MOVES - i - 1]
    node.deferred -= 1
    return move


@kernel(boolean(Node))
def _can_do_without(node):
    """Tell whether the node has a value without this move. The package's rules make sure of it, a user's may not."""
    return node.pass_kind == PASS_PROBCUT or (node.ply > 0 and node.best > -MATE_IN_MAX_PLY)


@kernel(i64(Context, Worker, Position, Node, i64))
def next_move(ctx, wk, pos, node, home):
    """Return the next move of the picker that is not pruned, else the move deferred first, with `DEFERRED`; NO_MOVE if
    there is none. home: number of the node's frame."""
    # step 7: next move
    hd = header_of(ctx)
    tb = tables_of(ctx)
    sound = hd.options.pruning.sound != 0
    while True:
        move = pick_move(tb, hd.learning, pos, node)
        if move == NO_MOVE:
            return take_deferred(node)
        prefetch_entry(ctx, likely_key(tb, pos, move))  # memory is slow, so start loading early
        if sound and skips_soundly(ctx, wk, home // MAX_PLY, pos, node, move):
            continue
        best = np.int64(node.best)
        pruned = prunes_move(ctx, wk, pos, node, move)
        check(best <= node.best < MATE_IN_MAX_PLY or node.best == best, "a rule raises the best value to a bound")
        node.best = max(best, min(node.best, MATE_IN_MAX_PLY - 1))  # a user's rule may write any number
        if not pruned or not _can_do_without(node):
            return move
        node.moves_done += 1
