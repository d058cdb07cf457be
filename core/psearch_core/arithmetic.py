"""Small functions that kernels of all packages share: mate scores, and random numbers that are the same everywhere.

Random numbers come from splitmix64 (Steele, Lea, Flood 2014). The state of a generator is one word. For each number:
`state += SPLITMIX_STEP`, then `splitmix64(state)`.
"""

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
    """Return the nearest score that is no mate. Sums with margins need it, since a user may choose any margin."""
    return max(1 - MATE_IN_MAX_PLY, min(score, MATE_IN_MAX_PLY - 1))


@kernel(i64(i64, i64))
def score_to_table(score, ply):
    """Return a score as the table stores it: a mate as the distance from the node, not from the root."""
    if score >= MATE_IN_MAX_PLY:
        return score + ply
    return score - ply if score <= -MATE_IN_MAX_PLY else score


@kernel(i64(i64, i64))
def score_from_table(score, ply):
    """Return a stored score as seen from the root. ply: ply of the node that the score belongs to."""
    if score >= MATE_IN_MAX_PLY:
        return score - ply
    return score + ply if score <= -MATE_IN_MAX_PLY else score


SPLITMIX_STEP = np.uint64(0x9E3779B97F4A7C15)
"""Step of the generator's state: 2**64 divided by the golden ratio."""


@kernel(u64(u64))
def splitmix64(state):
    """Return the random number for a state of the generator."""
    z = state
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
