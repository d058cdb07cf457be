"""Vote of several roots on the answer, held if the search was stopped before the main root ended.

The rule is that of Stockfish since 2026 (`ThreadPool::get_best_thread`). Every root votes for its move, weighted by the
distance of its score from the lowest score; depth does not count. Among the roots for the move with the most votes, the
one with the longest line is elected, and its score and line become the answer. A proved mate decides without votes: the
shortest mate for the side to move, else the mate against it that was searched deepest, since a root that has not seen
the mate would lose, too.

Locks: none, since the vote is held after all roots have ended.
"""

import numpy as np

from psearch_core.constants import BOUND_LOWER, BOUND_UPPER, INFINITE, MATE_IN_MAX_PLY
from psearch_core.toolchain.jit import kernel
from psearch_core.views import Context, Stack, boolean, header_of, i64, stack_of

_LEAST_WEIGHT = 6
"""Weight of the root with the lowest score, in centipawns, so that its vote counts, too; Stockfish has 14 units."""


@kernel(i64(Stack))
def _mate(root):
    """Return 1 if a root has proved a mate for the side to move, -1 if one against it, 0 if neither."""
    answer = root.answer
    if answer.score >= MATE_IN_MAX_PLY and answer.bound != BOUND_UPPER:
        return 1
    if answer.score <= -MATE_IN_MAX_PLY and answer.bound != BOUND_LOWER:
        return -1
    return 0


@kernel(i64(Context, i64, i64))
def _votes(ctx, move, lowest):
    total = np.int64(0)
    for i in range(header_of(ctx).first_roots):
        root = stack_of(ctx, i)
        if root.finished_depth > 0 and root.answer.pv[0] == move:
            total += root.answer.score - lowest + _LEAST_WEIGHT
    return total


@kernel(boolean(Context, Stack, Stack, i64))
def _goes_before(ctx, root, other, lowest):
    """Tell whether a root is better than another for the election; False if they are equal."""
    mate = _mate(root)
    others = _mate(other)
    if mate != others:
        return mate > 0 or others == 0
    if mate > 0:
        return root.answer.score > other.answer.score
    if mate < 0:
        return root.finished_depth > other.finished_depth
    if root.answer.pv[0] != other.answer.pv[0]:
        votes = _votes(ctx, np.int64(root.answer.pv[0]), lowest)
        for_other = _votes(ctx, np.int64(other.answer.pv[0]), lowest)
        if votes != for_other:
            return votes > for_other
    return root.answer.pv_length > other.answer.pv_length


@kernel(i64(Context))
def elected(ctx):
    """Return the number of the elected root; 0 if none has finished a depth."""
    count = header_of(ctx).first_roots
    lowest = np.int64(INFINITE)
    for i in range(count):
        root = stack_of(ctx, i)
        if root.finished_depth > 0:
            lowest = min(lowest, np.int64(root.answer.score))
    best = np.int64(-1)
    for i in range(count):
        root = stack_of(ctx, i)
        if root.finished_depth > 0 and (best < 0 or _goes_before(ctx, root, stack_of(ctx, best), lowest)):
            best = i
    return max(best, 0)
