"""Small arithmetic that kernels of all rooms share: scores of mates, random numbers that are the same everywhere.

Random numbers are those of splitmix64 (Steele, Lea, Flood 2014). A generator is one word. For each number:
`state += SPLITMIX_STEP`, then `splitmix64(state)`.
"""

from __future__ import annotations

import numpy as np

from psearch_core.constants import MATE_IN_MAX_PLY
from psearch_core.toolchain.jit import kernel
from psearch_core.views import boolean, i64, u64


@kernel(boolean(i64))
def is_mate_bound(score):
    """Tell whether a score is a mate for either side."""
    return score >= MATE_IN_MAX_PLY or score <= -MATE_IN_MAX_PLY


@kernel(i64(i64))
def clear_of_mates(score):
    """Return the nearest score that is no mate: for sums with margins, which a user may choose as wide as he likes."""
    return max(1 - MATE_IN_MAX_PLY, min(score, MATE_IN_MAX_PLY - 1))


@kernel(i64(i64, i64))
def score_to_table(score, ply):
    """Return a score for the table: mates are stored as distance from the node, not from the root."""
    if score >= MATE_IN_MAX_PLY:
        return score + ply
    return score - ply if score <= -MATE_IN_MAX_PLY else score


@kernel(i64(i64, i64))
def score_from_table(score, ply):
    """Return a stored score as seen from the root; ply: of the node that it is for."""
    if score >= MATE_IN_MAX_PLY:
        return score - ply
    return score + ply if score <= -MATE_IN_MAX_PLY else score


SPLITMIX_STEP = np.uint64(0x9E3779B97F4A7C15)
"""2**64 over the golden ratio."""


@kernel(u64(u64))
def splitmix64(state):
    """Return the number that belongs to a state."""
    z = state
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
