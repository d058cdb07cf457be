"""How often the data has what each column counts, and means of weights by that."""

from __future__ import annotations

import numpy as np

from psearch_core.terms import Term

from .columns import N_COLUMNS, N_PSQT, Array
from .data import Data
from .model import backward


def occurrence(data: Data) -> Array:
    """How often each column was used, weighted by phase: float64[2, N_COLUMNS]; danger: by 1 step each."""
    used = np.zeros((N_COLUMNS, 2))
    backward(data.index, np.abs(data.value), data.used, data.phase, np.ones(len(data)), used)
    return used.T


def table_means(weights: Array, used: Array) -> Array:
    """Mean value of each piece in the data: float64[2, 6]."""
    tables, used = weights[:, :N_PSQT].reshape(2, 6, 64), used[:, :N_PSQT].reshape(2, 6, 64)
    return (tables * used).sum(axis=2) / used.sum(axis=2)


def row_shares(term: Term, used: Array) -> Array:
    """How often each weight of a row was used, of all its uses: float64[2, count]."""
    counts = used[:, N_PSQT + term.first : N_PSQT + term.first + term.count]
    return counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-9)
