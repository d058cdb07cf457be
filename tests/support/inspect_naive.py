"""Negamax by recursion, compiled: `naive.NaiveSearch` calls it."""

from __future__ import annotations

import numba
import numpy as np
from inspect_entries import INSPECT

from psearch_core.chess.board.movegen import generate_captures, generate_quiets
from psearch_core.chess.board.position import find_pins, insufficient_material, is_crowded, make_move
from psearch_core.chess.evaluation.evaluate import evaluate
from psearch_core.constants import INFINITE, MATE, QUIESCENCE_BUDGET, UNLIMITED
from psearch_core.records import FRAME_SIZE, MAX_PLY
from psearch_core.toolchain.intrinsics import view
from psearch_core.toolchain.jit import entry, kernel
from psearch_core.views import boolean, evaluation_at, frame_at, i64, tables_at

naive_dtype = np.dtype(
    [
        ("tables", "<i8"),
        ("evaluation", "<i8"),
        ("frames", "<i8"),
        ("prune", "<i8"),
        ("budget", "<i8"),
        ("root_depth", "<i8"),
        ("game_count", "<i8"),
        ("games", "<u8", (1024,)),
    ]
)
"""Addresses of the records it works on; nodes that it may still take; keys of the game so far, the latest first."""
Naive = numba.from_dtype(naive_dtype)
naive_at = view(Naive)
TOO_MANY = 1 << 40


@kernel(boolean(Naive, i64))
def naive_repetition(naive, ply):
    """Seen before in the search, below the root; or twice before, the game included."""
    pos = frame_at(naive.frames + ply * FRAME_SIZE).position
    seen = 0
    for back in range(1, pos.reversible + 1):
        if back <= ply:
            earlier = frame_at(naive.frames + (ply - back) * FRAME_SIZE).position.key
        elif back - ply <= naive.game_count:
            earlier = naive.games[back - ply - 1]
        else:
            break
        if earlier == pos.key:
            seen += 1
            if back < ply or seen == 2:
                return True
    return False


@kernel(i64(Naive, i64, i64, i64, i64, i64))
def negamax(naive, ply, depth, credit, alpha, beta):
    """credit: what quiescence may look at below here."""
    naive.budget -= 1
    if naive.budget < 0:
        return TOO_MANY
    tb = tables_at(naive.tables)
    frame = frame_at(naive.frames + ply * FRAME_SIZE)
    pos = frame.position
    in_check = pos.checkers != np.uint64(0)
    find_pins(tb, pos)
    captures = generate_captures(tb, pos, frame.node, 0)
    count = generate_quiets(tb, pos, frame.node, captures)
    if ply > 0:
        if pos.rule50 >= 100 and not (in_check and count == 0):
            return 0
        if insufficient_material(pos) or naive_repetition(naive, ply):
            return 0
        if ply >= MAX_PLY - 1:
            return 0 if in_check else evaluate(tb, evaluation_at(naive.evaluation), pos)
    best = -INFINITE
    if credit == UNLIMITED and is_crowded(pos):
        credit = QUIESCENCE_BUDGET
    if depth <= 0 and in_check and credit == 0:
        return 0
    if depth <= 0 and not in_check:
        best = evaluate(tb, evaluation_at(naive.evaluation), pos)
        count = captures if captures <= credit else 0
    elif count == 0:
        return ply - MATE if in_check else 0
    for i in range(count):
        if naive.prune != 0 and max(best, alpha) >= beta:
            break
        share = UNLIMITED if depth > 0 or credit == UNLIMITED else credit // count
        if share == QUIESCENCE_BUDGET:
            share = UNLIMITED  # the only move has it all, and begins anew
        below = naive_child(naive, ply, depth, share, i, max(alpha, best), beta)
        if below == TOO_MANY:
            return TOO_MANY
        best = max(best, -below)
    return best


@kernel(i64(Naive, i64, i64, i64, i64, i64, i64))
def naive_child(naive, ply, depth, credit, index, alpha, beta):
    """Play one of the moves, and return the value for the other side."""
    frame = frame_at(naive.frames + ply * FRAME_SIZE)
    child = frame_at(naive.frames + (ply + 1) * FRAME_SIZE)
    make_move(tables_at(naive.tables), frame.position, child.position, frame.node.moves[index] & 0xFFFF)
    deeper = 0
    if depth > 0:
        gives_check = child.position.checkers != np.uint64(0)
        deeper = depth if gives_check and ply < 2 * naive.root_depth else depth - 1
    return negamax(naive, ply + 1, deeper, credit, -beta, -alpha)


@entry(i64(i64, i64, i64), INSPECT)
def naive_value(naive, ply, depth):
    """Value of the position in the frame at a ply, for the side to move; TOO_MANY if the budget did not suffice."""
    return negamax(naive_at(naive), ply, depth, UNLIMITED, -INFINITE, INFINITE)
