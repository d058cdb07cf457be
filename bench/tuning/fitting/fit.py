"""The fit: weights with the least squared error plus pull, by L-BFGS with gradients, and what is done around it.

The error is that of the expected score, against a target that mixes the game's result with the engine's own score, the
latter turned into an expected score by the K that predicts the results of its file best. First everything is fitted
together, with the units of danger free and the model `smooth`; then the units are rounded and all else is fitted again.

Colour flip: a flipped position has exactly -E and its target exactly 1 - t: it adds the same squared error again and
the same gradient. So each position is counted once, and White's better results in the file bend nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize, minimize_scalar

from psearch_core.terms import DANGER_STEPS, TERMS, UNIT_COUNT

from .data import Data
from .model import backward, danger_backward, expected, occurrence, predict, row_shares, table_means
from .pulls import pull_tables, pull_terms
from .weights import DANGER_COLUMN, KING, KNIGHT, MOBILITY, N_COLUMNS, N_PSQT, PAWN, Array

K_STEP = 0.01  # the optimiser's unit for log K, so that its curvature resembles the weights'
UNIT_STEP = 3.0  # and for units of danger


@dataclass
class Fit:
    """What is being fitted: weights and K, and the units while `smooth`."""

    weights: Array
    units: Array
    k: float


def fit_k(cp: Array, target: Array) -> float:
    """The K whose expected score is nearest to the target."""
    return float(
        minimize_scalar(lambda k: np.mean((target - expected(cp, k)) ** 2), bounds=(0.05, 5), method="bounded").x
    )


def centred(weights: Array, used: Array) -> Array:
    """The same evaluation with mobility tables of mean zero: what they hold of a piece's value goes to its squares."""
    weights = weights.copy()
    for kind, name in enumerate(MOBILITY, start=KNIGHT):
        term = next(term for term in TERMS if term.name == name)
        row = weights[:, N_PSQT + term.first : N_PSQT + term.first + term.count]
        mean = (row * row_shares(term, used)).sum(axis=1, keepdims=True)
        row -= mean
        weights[:, 64 * kind : 64 * kind + 64] += mean
    return weights


def fit(data: Data, target: Array, start: Fit, smooth: bool, pull_material: float, steps: int) -> Fit:
    """The weights and K with the least mean squared error plus pull (L-BFGS). smooth: units too, table interpolated."""
    free = np.ones(start.weights.shape, dtype=bool)
    free[:, :8] = free[:, 56:64] = False  # pawns never stand on their first or last rank
    used = occurrence(data)
    # In units in which each weight has about the same curvature: rare features would converge last otherwise.
    spread = np.zeros((N_COLUMNS, 2))
    backward(data.index, data.value.astype(np.float64) ** 2, data.used, data.phase, np.ones(len(data)), spread)
    spread[DANGER_COLUMN : DANGER_COLUMN + DANGER_STEPS] = len(data) / 50
    scale_of = (1.0 / np.sqrt(spread.T / len(data) + 1e-4))[free]
    n_weights = int(free.sum())

    def unpack(x: Array) -> Fit:
        weights = start.weights.copy()
        weights[free] += x[:n_weights] * scale_of
        units = start.units + UNIT_STEP * x[n_weights:-1] if smooth else start.units
        return Fit(weights, units, start.k * float(np.exp(K_STEP * x[-1])))

    def loss(x: Array) -> tuple[float, Array]:
        now = unpack(x)
        cp, scales = predict(data, now.weights, now.units, smooth)
        p = expected(cp, now.k)
        error = p - target
        by_cp = 2.0 / len(data) * error * p * (1.0 - p) * now.k * np.log(10) / 400.0
        slope = by_cp * scales
        grad, unit_grad = np.zeros((N_COLUMNS, 2)), np.zeros(UNIT_COUNT)
        backward(data.index, data.value, data.used, data.phase, slope, grad)
        rows = slice(DANGER_COLUMN, DANGER_COLUMN + DANGER_STEPS)
        table = np.ascontiguousarray(now.weights.T[rows])
        danger_backward(data.units, data.phase, now.units, table, smooth, slope, grad[rows], unit_grad)
        full = np.ascontiguousarray(grad.T)
        extra = pull_tables(now.weights, used, pull_material, full) + pull_terms(now.weights, used, full)
        # Per 1e-6 of squared error: the optimiser's tolerances then mean something.
        value = 1e6 * (float(np.mean(error**2)) + extra)
        parts = [full[free] * scale_of]
        if smooth:
            parts.append(UNIT_STEP * unit_grad)
        return value, 1e6 * np.concatenate([*parts, [K_STEP * float(by_cp @ cp)]])

    size = n_weights + (UNIT_COUNT if smooth else 0) + 1
    options = {"maxiter": steps, "maxfun": 2 * steps, "maxcor": 30, "ftol": 1e-9, "gtol": 1e-4}
    best = minimize(loss, np.zeros(size), jac=True, method="L-BFGS-B", options=options)
    print(f"  {best.nit} steps, {best.message}")
    return unpack(best.x)


def normalise(found: Fit, data: Data) -> Fit:
    """Scaled so that the mean pawn is worth 100 cp (of mg and eg means); kings worth 0 on average; danger from 0 up."""
    means = table_means(found.weights, occurrence(data))
    weights = found.weights.copy()
    weights[:, 64 * KING : 64 * KING + 64] -= means[:, KING : KING + 1]
    # every king is in some danger: only differences count, and more of it must not become less in the rare steps
    danger = weights[:, DANGER_COLUMN : DANGER_COLUMN + DANGER_STEPS]
    danger -= danger[:, :1]
    danger[0] = np.maximum.accumulate(danger[0])
    factor = 100.0 / means[:, PAWN].mean()
    return Fit(weights * factor, found.units, found.k / factor)


def rounded(found: Fit) -> Fit:
    """Whole numbers, as the kernels have them."""
    return Fit(np.rint(found.weights), np.rint(found.units), found.k)
