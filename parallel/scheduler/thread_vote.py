"""Whose answer is taken where every worker searches a root of its own, and none of them to the end.

The rule is that of Stockfish's Lazy SMP (`ThreadPool::get_best_thread`). Every worker votes for its move, with its last
finished depth times what its score is above the lowest of all scores; of the workers for the move with the most votes
the one whose own vote weighs most is elected, and its score and line are told. A mate that is proved decides without
votes: the shortest for us, and otherwise the mate against us that was searched deepest, for who has not seen it loses
as well.

Locks: none. Called once all roots are through.
"""

from __future__ import annotations

import numpy as np

from psearch.core.constants import BOUND_LOWER, BOUND_UPPER, INFINITE, MATE_IN_MAX_PLY
from psearch.core.toolchain.jit import kernel
from psearch.core.views import Context, Worker, boolean, header_of, i64, worker_of

_LEAST_WEIGHT = 6
"""Centipawns: of the worker with the lowest score, so that its vote counts too. Stockfish's 14 of its units."""


@kernel(i64(Worker))
def _mate(wk):
    """1: this worker has proved a mate for the side to move, -1: one against it, 0: neither."""
    answer = wk.answer
    if answer.score >= MATE_IN_MAX_PLY and answer.bound != BOUND_UPPER:
        return 1
    if answer.score <= -MATE_IN_MAX_PLY and answer.bound != BOUND_LOWER:
        return -1
    return 0


@kernel(i64(Worker, i64))
def _weight(wk, lowest):
    """Return the weight of one vote; 0 of a worker that has finished no depth."""
    return (wk.answer.score - lowest + _LEAST_WEIGHT) * wk.finished_depth


@kernel(i64(Context, i64, i64))
def _votes(ctx, move, lowest):
    """Return the votes for a move."""
    total = np.int64(0)
    for i in range(header_of(ctx).worker_count):
        wk = worker_of(ctx, i)
        if wk.finished_depth > 0 and wk.answer.pv[0] == move:
            total += _weight(wk, lowest)
    return total


@kernel(boolean(Context, Worker, Worker, i64))
def _goes_before(ctx, wk, other, lowest):
    """Whether a worker is to be elected rather than another; of equal ones neither."""
    mate = _mate(wk)
    others = _mate(other)
    if mate != others:
        return mate > 0 or others == 0
    if mate > 0:
        return wk.answer.score > other.answer.score
    if mate < 0:
        return wk.finished_depth > other.finished_depth
    if wk.answer.pv[0] != other.answer.pv[0]:
        votes = _votes(ctx, np.int64(wk.answer.pv[0]), lowest)
        for_other = _votes(ctx, np.int64(other.answer.pv[0]), lowest)
        if votes != for_other:
            return votes > for_other
    return _weight(wk, lowest) > _weight(other, lowest)


@kernel(i64(Context))
def elected(ctx):
    """Return number of the worker whose answer is taken; 0 if none has finished a depth."""
    count = header_of(ctx).worker_count
    lowest = np.int64(INFINITE)
    for i in range(count):
        wk = worker_of(ctx, i)
        if wk.finished_depth > 0:
            lowest = min(lowest, np.int64(wk.answer.score))
    best = np.int64(-1)
    for i in range(count):
        wk = worker_of(ctx, i)
        if wk.finished_depth > 0 and (best < 0 or _goes_before(ctx, wk, worker_of(ctx, best), lowest)):
            best = i
    return max(best, 0)
