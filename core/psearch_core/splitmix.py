"""splitmix64 (Steele, Lea, Flood 2014): random numbers that are the same on every run and machine.

A generator is one word. For each number: `state += SPLITMIX_STEP`, then `splitmix64(state)`.
"""

from __future__ import annotations

import numpy as np

from psearch_core.toolchain.jit import kernel
from psearch_core.views import u64

SPLITMIX_STEP = np.uint64(0x9E3779B97F4A7C15)
"""2**64 over the golden ratio."""


@kernel(u64(u64))
def splitmix64(state):
    """Return the number that belongs to a state."""
    z = state
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
