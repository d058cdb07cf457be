"""The entry that computes the tables which depend on chess alone."""

from __future__ import annotations

from psearch_core.chess.board.attacks import fill_attack_tables
from psearch_core.chess.board.zobrist import fill_zobrist
from psearch_core.chess.chess_entries import CHESS
from psearch_core.chess.evaluation.kpk import fill_kpk
from psearch_core.toolchain.jit import entry
from psearch_core.views import i64, tables_at, void


@entry(void(i64), CHESS)
def fill_tables(tables):
    """Compute the attack tables, Zobrist keys and the bits of king and pawn against king at an address."""
    tb = tables_at(tables)
    fill_attack_tables(tb)
    fill_zobrist(tb)
    fill_kpk(tb)
