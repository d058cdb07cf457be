"""A ply of perft in a user's game."""

from __future__ import annotations

import numpy as np

from psearch.games.limits import MOST_MOVES, POSITION_BYTES

level_dtype = np.dtype(
    [
        ("position", "u1", (POSITION_BYTES,)),
        ("found", "u2", (MOST_MOVES,)),
        ("count", "i8"),
        ("cursor", "i8"),  # next move; -1: the moves are not there yet
    ]
)
