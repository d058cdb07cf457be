"""A vector of weights: what its columns are, and the one that is plain material."""

from __future__ import annotations

from typing import Any

import numpy as np

from psearch_core.terms import DANGER, TERM_COUNT

Array = np.ndarray[Any, Any]

PIECES = ("pawn", "knight", "bishop", "rook", "queen", "king")
PAWN, KNIGHT, BISHOP, ROOK, QUEEN, KING = range(6)
MATERIAL = (100, 300, 300, 500, 900, 0)  # what means are pulled to, and the baseline that a fit is compared with
MOBILITY = ("MOBILITY_KNIGHT", "MOBILITY_BISHOP", "MOBILITY_ROOK", "MOBILITY_QUEEN")

N_PSQT = 6 * 64
# Columns of a weight vector float64[2, N_COLUMNS]: 64 * piece + square, then TERMS. Row 0 mg, row 1 eg.
N_COLUMNS = N_PSQT + TERM_COUNT
DANGER_COLUMN = N_PSQT + DANGER


def material_only() -> Array:
    """Weights of plain material, all else zero."""
    weights = np.zeros((2, N_COLUMNS))
    for kind, value in enumerate(MATERIAL):
        ranks = slice(8, 56) if kind == PAWN else slice(0, 64)
        weights[:, 64 * kind : 64 * kind + 64][:, ranks] = value
    return weights
