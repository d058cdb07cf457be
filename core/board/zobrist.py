"""Zobrist keys, from a fixed seed: the same on every run and machine."""

from __future__ import annotations

import numpy as np

from psearch.core.jit import kernel
from psearch.core.views import Tables, u64, void

_SEED = np.uint64(0x7073656172636821)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@kernel(u64(u64))
def splitmix64(state):
    """The output function of splitmix64 (Steele, Lea, Flood 2014)."""
    z = state
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@kernel(void(Tables))
def fill_zobrist(tb):
    state = _SEED
    for code in range(16):
        for square in range(64):
            state += _GOLDEN
            tb.zobrist_piece[code, square] = splitmix64(state)
    for square in range(64):
        state += _GOLDEN
        tb.zobrist_castling[square] = splitmix64(state)
    for file in range(8):
        state += _GOLDEN
        tb.zobrist_ep[file] = splitmix64(state)
    state += _GOLDEN
    tb.zobrist_side = splitmix64(state)
