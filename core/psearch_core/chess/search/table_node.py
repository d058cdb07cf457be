"""What a node reads from the transposition table and writes to it."""

from __future__ import annotations

from psearch_core.chess.search.decisions import evaluation_of
from psearch_core.chess.search.tt import probe, store, stored_eval
from psearch_core.constants import BOUND_LOWER, BOUND_NONE, BOUND_UPPER, NO_SCORE, U0
from psearch_core.scores import clear_of_mates, is_mate_bound, score_to_table
from psearch_core.toolchain.jit import kernel
from psearch_core.views import (
    Context,
    Frame,
    Node,
    Position,
    Worker,
    header_of,
    i64,
    u64,
    void,
)


@kernel(u64(Context, Position))
def probe_table(ctx, pos):
    """The table's data word for a position, U0 without one or with the table switched off."""
    return probe(ctx, pos.key) if header_of(ctx).options.tt else U0


@kernel(i64(Context, Worker, Position))
def fresh_eval(ctx, wk, pos):
    """The evaluation of the position at the worker's ply; a user's may be as large as he likes, and is no mate."""
    return clear_of_mates(evaluation_of(ctx, wk, pos))


@kernel(i64(Context, Worker, Position, u64))
def static_eval(ctx, wk, pos, data):
    """The evaluation of a position not in check, not corrected: from the table if it has it."""
    value = stored_eval(data)
    return value if value != NO_SCORE else fresh_eval(ctx, wk, pos)


@kernel(i64(Node))
def estimate_of(node):
    """The static evaluation, or the table's score where its bound says that it is nearer to the truth."""
    if node.eval == NO_SCORE or node.tt_bound == BOUND_NONE or is_mate_bound(node.tt_score):
        return node.eval
    score = node.tt_score
    nearer = (node.tt_bound & BOUND_LOWER and score > node.eval) or (node.tt_bound & BOUND_UPPER and score < node.eval)
    return score if nearer else node.eval


@kernel(void(Context, Worker, Frame, i64, i64, i64))
def store_result(ctx, wk, frame, value, depth, bound):
    """Write a result for a node into the table."""
    age, score = header_of(ctx).age, score_to_table(value, wk.ply)
    store(ctx, age, frame.position.key, frame.node.best_move, score, frame.node.raw_eval, depth, bound)
