"""The transposition table, which all workers share without locks, and a node's reads and writes.

A cluster is one cache line of four entries; an entry is two words, `key ^ data` and `data` (Hyatt and Mann 2002). If
two workers write one entry at the same time, a mixed pair does not match the key and counts as a miss. Results of
aborted subtrees are never stored.

data, from the low end: move 16 bits, score 16, static evaluation 16, depth 8, bound 2, age 6.
"""

import numpy as np

from psearch_core.arithmetic import clear_of_mates, is_mate_bound, score_from_table, score_to_table
from psearch_core.chess.evaluation.evaluate import evaluate_by_network
from psearch_core.chess.search.decisions import evaluation_of
from psearch_core.constants import (
    AGES,
    BOUND_EXACT,
    BOUND_LOWER,
    BOUND_NONE,
    BOUND_UPPER,
    CLUSTER_BYTES,
    ENTRY_BYTES,
    MATE,
    NO_MOVE,
    NO_SCORE,
    U0,
)
from psearch_core.toolchain.intrinsics import check, high_product, prefetch, relaxed_load_u64, relaxed_store_u64
from psearch_core.toolchain.jit import kernel
from psearch_core.views import Context, Frame, Node, Position, Worker, boolean, header_of, i64, tables_of, u64, void


@kernel(i64(u64))
def entry_move(data):
    return np.int64(data) & 0xFFFF


@kernel(i64(u64))
def _score_field(data):
    return ((np.int64(data >> np.uint64(16)) & 0xFFFF) ^ 0x8000) - 0x8000


@kernel(i64(u64))
def entry_eval(data):
    return ((np.int64(data >> np.uint64(32)) & 0xFFFF) ^ 0x8000) - 0x8000


@kernel(i64(u64))
def entry_depth(data):
    return np.int64(data >> np.uint64(48)) & 0xFF


@kernel(i64(u64))
def entry_bound(data):
    return np.int64(data >> np.uint64(56)) & 3


@kernel(i64(u64))
def entry_age(data):
    return np.int64(data >> np.uint64(58))


@kernel(i64(u64, i64))
def entry_score(data, ply):
    """Return the stored score as seen from the root."""
    return score_from_table(_score_field(data), ply)


@kernel(u64(i64, i64, i64, i64, i64, i64))
def pack_entry(move, score, eval, depth, bound, age):
    low = (move & 0xFFFF) | ((score & 0xFFFF) << 16) | ((eval & 0xFFFF) << 32) | ((depth & 0xFF) << 48)
    return np.uint64(low) | (np.uint64(bound | (age << 2)) << np.uint64(56))


@kernel(i64(Context, u64))
def _cluster(ctx, key):
    return ctx.tt + high_product(key, ctx.tt_clusters) * CLUSTER_BYTES


@kernel(void(Context, u64))
def prefetch_entry(ctx, key):
    prefetch(_cluster(ctx, key))


@kernel(u64(Context, u64))
def probe(ctx, key):
    """Return the data word stored for a key; 0 if there is none."""
    entry = _cluster(ctx, key)
    for _ in range(4):
        data = relaxed_load_u64(entry + 8)
        if relaxed_load_u64(entry) ^ data == key and data != U0:
            return data
        entry += ENTRY_BYTES
    return U0


@kernel(boolean(u64, i64, i64, i64))
def _keeps(old, depth, bound, age):
    """Tell whether an entry for the same position is better than the new result."""
    return bound != BOUND_EXACT and entry_age(old) == age and entry_depth(old) > depth + 3


@kernel(void(Context, i64, u64, i64, i64, i64, i64, i64))
def store(ctx, age, key, move, score, eval, depth, bound):
    """Write a result, unless the position's entry is better.

    score: relative to the node (`score_to_table`); depth: 0 .. 255. Replaces the entry of the same position, else the
    shallowest and oldest entry of the cluster.
    """
    check(0 <= depth <= 255, "a depth fits into its field of an entry")
    check(abs(score) <= MATE and abs(eval) <= -NO_SCORE, "scores fit into their fields of an entry")
    check(BOUND_UPPER <= bound <= BOUND_EXACT, "a result is a bound")
    cluster = _cluster(ctx, key)
    victim = cluster
    worst = 1 << 30
    for slot in range(4):
        entry = cluster + slot * ENTRY_BYTES
        data = relaxed_load_u64(entry + 8)
        if data == U0 or relaxed_load_u64(entry) ^ data == key:
            if data != U0:
                if _keeps(data, depth, bound, age):
                    return
                if move == NO_MOVE:
                    move = entry_move(data)
            victim = entry
            break
        value = entry_depth(data) - 8 * ((age - entry_age(data)) & (AGES - 1))
        if value < worst:
            worst = value
            victim = entry
    data = pack_entry(move, score, eval, depth, bound, age)
    relaxed_store_u64(victim, key ^ data)
    relaxed_store_u64(victim + 8, data)


@kernel(boolean(u64, i64, i64, i64, i64))
def cuts(data, depth, alpha, beta, ply):
    """Tell whether a stored result answers a search of this depth and window."""
    if data == U0 or entry_depth(data) < depth:
        return False
    bound = entry_bound(data)
    score = entry_score(data, ply)
    if bound == BOUND_EXACT:
        return True
    if bound == BOUND_LOWER:
        return score >= beta
    return bound == BOUND_UPPER and score <= alpha


@kernel(i64(u64))
def stored_eval(data):
    """Return the static evaluation of an entry; NO_SCORE without one."""
    return NO_SCORE if data == U0 or entry_bound(data) == BOUND_NONE else entry_eval(data)


@kernel(u64(Context, Position))
def probe_table(ctx, pos):
    """Return the table's data word for a position; U0 without one or if the table is off."""
    return probe(ctx, pos.key) if header_of(ctx).options.tt else U0


@kernel(i64(Context, Worker, Position))
def fresh_eval(ctx, wk, pos):
    """Return the evaluation of the position at the worker's ply; that of a user is limited to values below mate."""
    return clear_of_mates(evaluation_of(ctx, wk, pos))


@kernel(i64(Context, Worker, Node, Position))
def early_eval(ctx, wk, node, pos):
    """Return the network's evaluation before the table is asked, since its entry is still on its way from memory;
    NO_SCORE in check, and for evaluations that cost more or that a user's file replaces."""
    if node.in_check or not header_of(ctx).options.early_evaluation:
        return NO_SCORE
    return clear_of_mates(evaluate_by_network(tables_of(ctx), wk.evaluation, pos, wk.ply))


@kernel(i64(Context, Worker, Position, u64, i64))
def static_eval(ctx, wk, pos, data, early):
    """Return the evaluation, not corrected, of a position that is not in check: `early` or, if it is NO_SCORE, that of
    the table, or a fresh one."""
    value = early if early != NO_SCORE else stored_eval(data)
    return value if value != NO_SCORE else fresh_eval(ctx, wk, pos)


@kernel(i64(Node))
def estimate_of(node):
    """Return the static evaluation, or the table's score if its bound makes it more accurate."""
    if node.eval == NO_SCORE or node.tt_bound == BOUND_NONE or is_mate_bound(node.tt_score):
        return node.eval
    score = node.tt_score
    nearer = (node.tt_bound & BOUND_LOWER and score > node.eval) or (node.tt_bound & BOUND_UPPER and score < node.eval)
    return score if nearer else node.eval


@kernel(void(Context, Worker, Frame, i64, i64, i64))
def store_result(ctx, wk, frame, value, depth, bound):
    """Write the result of a node into the table."""
    age, score = header_of(ctx).age, score_to_table(value, wk.ply)
    store(ctx, age, frame.position.key, frame.node.best_move, score, frame.node.raw_eval, depth, bound)
