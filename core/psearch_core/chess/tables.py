"""Fills the tables that every kernel reads: attacks, Zobrist keys, king and pawn against king, weights."""

from __future__ import annotations

import numpy as np

from psearch_core.chess.chess_entries import fill_tables
from psearch_core.chess.evaluation import weights
from psearch_core.chess.evaluation.network_file import EvaluationNetwork, default_network
from psearch_core.records import tables_dtype
from psearch_core.terms import PAIR_SHIFT, REST_BOUND, TERMS, UNITS, Term


def term_pairs(term: Term) -> tuple[tuple[int, int], ...]:
    """Return the weights of a term, as pairs of middle game and end game; 0 for a new term that is not fitted yet."""
    return weights.TERM_VALUES.get(term.name, ((0, 0),) * term.count)


def fill_weights(tb: np.ndarray) -> None:
    """Copy the evaluation weights into the tables, an array of one `tables_dtype` record."""
    record = tb[0]
    for piece in range(6):
        for square in range(64):
            white, black = piece + 1, 8 + piece + 1
            record["psq_mg"][white][square] = weights.PSQT_MG[piece][square]
            record["psq_eg"][white][square] = weights.PSQT_EG[piece][square]
            record["psq_mg"][black][square ^ 56] = -weights.PSQT_MG[piece][square]
            record["psq_eg"][black][square ^ 56] = -weights.PSQT_EG[piece][square]
        record["phase"][piece + 1] = record["phase"][8 + piece + 1] = weights.PHASE[piece]
    if unknown := weights.TERM_VALUES.keys() - {term.name for term in TERMS}:
        raise AssertionError(f"weights for terms that psearch_core/terms.py does not have: {sorted(unknown)}")
    for term in TERMS:
        pairs = term_pairs(term)
        if len(pairs) != term.count:
            raise AssertionError(f"{term.name} has {len(pairs)} weights, not {term.count}")
        record["terms"][term.first : term.first + term.count] = [(mg << PAIR_SHIFT) + eg for mg, eg in pairs]
    for unit in UNITS:
        record["units"][unit.first : unit.first + unit.count] = weights.UNIT_VALUES[unit.name]
    record["rest_bound"] = REST_BOUND


def make_tables(tb: np.ndarray | None = None, network: EvaluationNetwork | None = None) -> np.ndarray:
    """Fill an array of one `tables_dtype` record and return it; without `tb` a new array is made.

    network: None for the package's network. Raises NetworkError if that cannot be read.
    """
    if tb is None:
        tb = np.zeros(1, tables_dtype)
    fill_tables(tb.ctypes.data)
    fill_weights(tb)
    tb["network"] = (network or default_network()).record
    return tb
