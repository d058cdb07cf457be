"""The entry that computes the tables which depend on chess alone."""

from __future__ import annotations

from psearch.core.board.attacks import fill_attack_tables
from psearch.core.board.zobrist import fill_zobrist
from psearch.core.entries import CHESS
from psearch.core.evaluation.kpk import fill_kpk
from psearch.core.jit import entry
from psearch.core.views import i64, tables_at, void


@entry(void(i64), CHESS)
def fill_tables(tables):
    """Compute the attack tables, Zobrist keys and the bits of king and pawn against king at an address."""
    tb = tables_at(tables)
    fill_attack_tables(tb)
    fill_zobrist(tb)
    fill_kpk(tb)
