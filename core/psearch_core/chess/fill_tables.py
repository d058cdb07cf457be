"""Computes the tables that depend only on the rules of chess: attacks, Zobrist keys, king and pawn against king."""

import numpy as np

from psearch_core.arithmetic import SPLITMIX_STEP, splitmix64
from psearch_core.chess.board.attacks import fill_attack_tables
from psearch_core.chess.chess_entries import CHESS
from psearch_core.chess.evaluation.endgames import fill_kpk
from psearch_core.toolchain.jit import entry, kernel
from psearch_core.views import Tables, i64, tables_at, void

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


@entry(void(i64), CHESS)
def fill_tables(tables):
    """Compute the attack tables, Zobrist keys and the table of king and pawn against king at an address."""
    tb = tables_at(tables)
    fill_attack_tables(tb)
    fill_zobrist(tb)
    fill_kpk(tb)
