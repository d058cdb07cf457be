"""The model: what the weights say of a position, and the derivatives.

E = s (M + R), White minus Black; every weight is a pair (mg, eg), blended by the phase. s, the scale of endings, is
taken from the kernel. Danger to a king is looked up in a table of free weights; the units that are looked up are sums
of whole numbers. While the fit is `smooth`, units need not be whole and the table is interpolated; otherwise all is
computed exactly as the kernel does it.

E predicts the expected score as `1 / (1 + 10 ** (-K * E / 400))`.
"""

from __future__ import annotations

import numba
import numpy as np

from psearch_core.terms import DANGER_STEP, DANGER_STEPS, UNIT_COUNT, Term

from .data import Data
from .weights import DANGER_COLUMN, N_COLUMNS, N_PSQT, Array

_njit = numba.njit(error_model="numpy", fastmath=True)


@_njit
def _forward(index: Array, value: Array, used: Array, phase: Array, weights: Array, out: Array) -> None:
    """M and the linear part of R of each position, in cp."""
    for i in range(len(phase)):
        mg = 0.0
        eg = 0.0
        for j in range(used[i]):
            mg += value[i, j] * weights[index[i, j], 0]
            eg += value[i, j] * weights[index[i, j], 1]
        out[i] = mg * phase[i] + eg * (1.0 - phase[i])


@_njit
def backward(index: Array, value: Array, used: Array, phase: Array, slope: Array, grad: Array) -> None:
    """Add slope (the derivative by M + R of each position) to the weights that made it."""
    for i in range(len(phase)):
        mg = slope[i] * phase[i]
        eg = slope[i] - mg
        for j in range(used[i]):
            grad[index[i, j], 0] += value[i, j] * mg
            grad[index[i, j], 1] += value[i, j] * eg


@_njit
def _danger_steps(units: Array, unit_weights: Array, smooth: bool) -> tuple[float, int, int, float]:
    """Look danger up: return the place in the table, the steps below and above it, and the share of the latter."""
    total = 0.0
    for k in range(UNIT_COUNT):
        total += units[k] * unit_weights[k]
    at = min(max(total / DANGER_STEP - (0.5 if smooth else 0.0), 0.0), DANGER_STEPS - 1.0)
    low = int(at)
    return at, low, min(low + 1, DANGER_STEPS - 1), at - low if smooth else 0.0


@_njit
def _danger_forward(units: Array, phase: Array, unit_weights: Array, table: Array, smooth: bool, out: Array) -> None:
    """Add White's danger to Black's king, less Black's to White's."""
    for i in range(len(phase)):
        for side in range(2):
            _, low, high, part = _danger_steps(units[i, side], unit_weights, smooth)
            mg = table[low, 0] * (1.0 - part) + table[high, 0] * part
            eg = table[low, 1] * (1.0 - part) + table[high, 1] * part
            term = mg * phase[i] + eg * (1.0 - phase[i])
            out[i] += term if side == 0 else -term


@_njit
def danger_backward(
    units: Array,
    phase: Array,
    unit_weights: Array,
    table: Array,
    smooth: bool,
    slope: Array,
    grad: Array,
    unit_grad: Array,
) -> None:
    """The derivatives that belong to `_danger_forward`."""
    for i in range(len(phase)):
        for side in range(2):
            at, low, high, part = _danger_steps(units[i, side], unit_weights, smooth)
            d = slope[i] if side == 0 else -slope[i]
            mg = d * phase[i]
            eg = d - mg
            grad[low, 0] += mg * (1.0 - part)
            grad[low, 1] += eg * (1.0 - part)
            grad[high, 0] += mg * part
            grad[high, 1] += eg * part
            if smooth and 0.0 < at < DANGER_STEPS - 1.0:
                rise = mg * (table[high, 0] - table[low, 0]) + eg * (table[high, 1] - table[low, 1])
                for k in range(UNIT_COUNT):
                    unit_grad[k] += rise / DANGER_STEP * units[i, side, k]


def predict(data: Data, weights: Array, units: Array, smooth: bool = False) -> tuple[Array, Array]:
    """E of each position in cp, and the scale that is in it. weights: float64[2, N_COLUMNS], units: [UNIT_COUNT]."""
    columns = np.ascontiguousarray(weights.T, dtype=np.float64)
    out = np.zeros(len(data))
    _forward(data.index, data.value, data.used, data.phase, columns, out)
    table = columns[DANGER_COLUMN : DANGER_COLUMN + DANGER_STEPS]
    _danger_forward(data.units, data.phase, np.asarray(units, np.float64), table, smooth, out)
    scales = np.where(out >= 0, data.scales[:, 0], data.scales[:, 1])
    return out * scales, scales


def expected(cp: Array, k: float | Array) -> Array:
    """Expected score (0..1) of a centipawn score."""
    return 1.0 / (1.0 + 10.0 ** (-k / 400.0 * cp))


def occurrence(data: Data) -> Array:
    """Return how often each column was used, weighted by phase: float64[2, N_COLUMNS]; danger: by 1 step each."""
    used = np.zeros((N_COLUMNS, 2))
    backward(data.index, np.abs(data.value), data.used, data.phase, np.ones(len(data)), used)
    return used.T


def table_means(weights: Array, used: Array) -> Array:
    """Mean value of each piece in the data: float64[2, 6]."""
    tables, used = weights[:, :N_PSQT].reshape(2, 6, 64), used[:, :N_PSQT].reshape(2, 6, 64)
    return (tables * used).sum(axis=2) / used.sum(axis=2)


def row_shares(term: Term, used: Array) -> Array:
    """Return how often each weight of a row was used, of all its uses: float64[2, count]."""
    counts = used[:, N_PSQT + term.first : N_PSQT + term.first + term.count]
    return counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-9)
