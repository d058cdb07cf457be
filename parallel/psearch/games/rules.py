"""The rules of a user's game as the search calls them: hooks for which the functions of a file stand in.

A position is known by its address: `POSITION_BYTES` of a position's record are the game's. `plain_functions.py` makes
the stand-ins from these functions; without a file nothing here is called.
"""

from __future__ import annotations

from typing import cast

import numba
import numpy as np
from numba.core import types

from psearch.games.game_limits import MOST_MOVES
from psearch_core.constants import U0
from psearch_core.toolchain.intrinsics import view
from psearch_core.toolchain.jit import hook
from psearch_core.views import boolean, i64, u64, void

Found = cast(types.Record, numba.from_dtype(np.dtype([("moves", "u2", (MOST_MOVES,))])))
"""A list of moves as a game writes it."""
found_at = view(Found)


@hook(void(i64))
def start(position):
    """Write the starting position; the bytes are zero."""


@hook(i64(i64, i64))
def moves(position, found):
    """Write the legal moves, best guess first, as `uint16` at the address `found`; returns their number."""
    return np.int64(0)


@hook(i64())
def most_moves():
    """Return how many moves a position has at most."""
    return np.int64(MOST_MOVES)


@hook(void(i64, i64))
def make(position, move):
    """Play a move in place; the position is seen from the other side afterwards."""


@hook(boolean(i64))
def ended(position):
    """Tell whether the game is over."""
    return True


@hook(i64(i64))
def result(position):
    """Return the score of an ended game, for the side to move."""
    return np.int64(0)


@hook(i64(i64))
def evaluate(position):
    """Return a guess at the score, for the side to move."""
    return np.int64(0)


@hook(u64(i64))
def key(position):
    """Return a hash of the position, the side to move included."""
    return U0
