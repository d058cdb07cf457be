"""Zobrist keys, from a fixed seed: the same on every run and machine."""

from __future__ import annotations

import numpy as np

from psearch_core.splitmix import SPLITMIX_STEP, splitmix64
from psearch_core.toolchain.jit import kernel
from psearch_core.views import Tables, void

_SEED = np.uint64(0x7073656172636821)


@kernel(void(Tables))
def fill_zobrist(tb):
    state = _SEED
    for code in range(16):
        for square in range(64):
            state += SPLITMIX_STEP
            tb.zobrist_piece[code, square] = splitmix64(state)
    for square in range(64):
        state += SPLITMIX_STEP
        tb.zobrist_castling[square] = splitmix64(state)
    for file in range(8):
        state += SPLITMIX_STEP
        tb.zobrist_ep[file] = splitmix64(state)
    state += SPLITMIX_STEP
    tb.zobrist_side = splitmix64(state)
