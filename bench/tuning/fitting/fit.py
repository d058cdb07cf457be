"""The fit: weights with the least squared error plus pull, by L-BFGS with gradients, and what is done around it.

The error is that of the expected score, against a target that mixes the game's result with the engine's own score, the
latter turned into an expected score by the K that predicts the results of its file best. First everything is fitted
together, with the units of danger free and the model `smooth`; then the units are rounded and all else is fitted again.

Colour flip: a flipped position has exactly -E and its target exactly 1 - t: it adds the same squared error again and
the same gradient. So each position is counted once, and White's better results in the file bend nothing.

**Pulls** are added to the squared error, so that what the data hardly shows stays sensible. Squares that pieces rarely
see are pulled to the mean of the piece's table, to their neighbours, and to the square mirrored left to right; weights
that form a row (mobility, ranks, danger) to those beside them; the means of mobility tables, and all terms that form no
such table, to zero. For the middle-game king, who hardly ever leaves his first ranks, smooth means KING_SLOPE. The mean
of each piece-square table is pulled to plain material: engines do not stay a piece down in the middle game without
compensation, and such positions alone would make a rook worth less than a bishop, while a search asks about positions
where a piece is simply lost.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from psearch_core.terms import DANGER_STEPS, TERMS, UNIT_COUNT

from .data import Data
from .model import backward, danger_backward, expected, occurrence, predict, row_shares, table_means
from .weights import DANGER_COLUMN, KING, KNIGHT, MATERIAL, MOBILITY, N_COLUMNS, N_PSQT, PAWN, QUEEN, Array

try:
    from scipy.optimize import minimize, minimize_scalar
except ImportError:
    raise SystemExit("this needs scipy: pip install '.[study]'") from None

# Strength of the pulls: added to the mean squared error per squared centipawn.
PULL_MATERIAL = 2e-8  # a piece's mean in the data, to MATERIAL
PULL_MEAN = 2e-10  # a square, to the mean of its table
PULL_NEIGHBOUR = 1e-9  # a square, to those beside, above and below it
PULL_MIRROR = 2e-9  # a square, to its mirror image
PULL_ZERO = 2e-10  # a term, to nothing
PULL_ROW = 3e-9  # terms that form a row, to those beside them
PULL_ROW_MEAN = 1e-5  # the mean of a mobility table in the data, to nothing
KING_SLOPE = -30.0  # cp a rank: what smooth means for the middle-game king

ROWS = {
    "PHALANX": 6,
    "SUPPORTED": 6,
    "CANDIDATE": 6,
    "PASSED": 6,
    "PASSED_OWN_KING": 4,
    "PASSED_ENEMY_KING": 4,
    "MOBILITY_KNIGHT": 9,
    "MOBILITY_BISHOP": 14,
    "MOBILITY_ROOK": 15,
    "MOBILITY_QUEEN": 28,
    "DANGER": 64,
    "PASSED_BLOCKED": 4,
    "PASSED_FREE": 4,
    "PASSED_SAFE": 4,
    "PASSED_DEFENDED": 4,
}
"""Terms of which so many at a time form a row."""


def pull_tables(weights: Array, used: Array, pull_material: float, grad: Array) -> float:
    """The regularisation of the piece-square tables; adds its gradient."""
    tables = weights[:, :N_PSQT].reshape(2, 6, 8, 8)
    grad_tables = np.zeros((2, 6, 8, 8))
    loss = 0.0
    for kind in range(6):
        ranks = slice(1, 7) if kind == PAWN else slice(0, 8)
        t, g = tables[:, kind, ranks], grad_tables[:, kind, ranks]
        off = t - t.mean(axis=(1, 2), keepdims=True)
        if kind == KING:
            off[0] = 0.0  # see KING_SLOPE
        loss += PULL_MEAN * np.sum(off**2)
        g += 2 * PULL_MEAN * off
        up, right = np.diff(t, axis=1), np.diff(t, axis=2)
        if kind == KING:
            up[0] -= KING_SLOPE
        loss += PULL_NEIGHBOUR * (np.sum(up**2) + np.sum(right**2))
        g[:, 1:] += 2 * PULL_NEIGHBOUR * up
        g[:, :-1] -= 2 * PULL_NEIGHBOUR * up
        g[:, :, 1:] += 2 * PULL_NEIGHBOUR * right
        g[:, :, :-1] -= 2 * PULL_NEIGHBOUR * right
        if kind not in (QUEEN, KING):
            off = t - t[:, :, ::-1]
            loss += PULL_MIRROR * np.sum(off**2) / 2
            g += 2 * PULL_MIRROR * off
    off = table_means(weights, used) - np.array(MATERIAL)
    off[:, KING] = 0.0
    loss += pull_material * np.sum(off**2)
    shares = used[:, :N_PSQT].reshape(2, 6, 64)
    shares = shares / shares.sum(axis=2, keepdims=True)
    grad[:, :N_PSQT] += grad_tables.reshape(2, N_PSQT)
    grad[:, :N_PSQT] += (2 * pull_material * off[:, :, None] * shares).reshape(2, N_PSQT)
    return loss


def pull_terms(weights: Array, used: Array, grad: Array) -> float:
    """The regularisation of the terms; adds its gradient."""
    terms, g = weights[:, N_PSQT:], grad[:, N_PSQT:]
    loss = 0.0
    for term in TERMS:
        part = slice(term.first, term.first + term.count)
        if term.name in MOBILITY:
            # what a piece is worth on average belongs into its piece-square table, where the pull to material sees it
            shares = row_shares(term, used)
            mean = (terms[:, part] * shares).sum(axis=1, keepdims=True)
            loss += PULL_ROW_MEAN * float(np.sum(mean**2))
            g[:, part] += 2 * PULL_ROW_MEAN * mean * shares
        elif term.name != "DANGER":  # of which the rare high steps must not fall back to nothing
            loss += PULL_ZERO * float(np.sum(terms[:, part] ** 2))
            g[:, part] += 2 * PULL_ZERO * terms[:, part]
        length = ROWS.get(term.name, 0)
        if not length:
            continue
        for first in range(term.first, term.first + term.count, length):
            row, g_row = terms[:, first : first + length], g[:, first : first + length]
            # a piece that can hardly move is worse by more than the next square is worth: bends are pulled, not slopes
            bend = np.diff(row, axis=1) if length < 8 else np.diff(row, n=2, axis=1)
            loss += PULL_ROW * float(np.sum(bend**2))
            if length < 8:
                g_row[:, 1:] += 2 * PULL_ROW * bend
                g_row[:, :-1] -= 2 * PULL_ROW * bend
            else:
                g_row[:, 2:] += 2 * PULL_ROW * bend
                g_row[:, 1:-1] -= 4 * PULL_ROW * bend
                g_row[:, :-2] += 2 * PULL_ROW * bend
    return loss


K_STEP = 0.01  # the optimiser's unit for log K, so that its curvature resembles the weights'
UNIT_STEP = 3.0  # and for units of danger


@dataclass
class Fit:
    """The parameters that are being fitted: weights and K, and the units while `smooth`."""

    weights: Array
    units: Array
    k: float


def fit_k(cp: Array, target: Array) -> float:
    """The K whose expected score is nearest to the target."""
    return float(
        minimize_scalar(lambda k: np.mean((target - expected(cp, k)) ** 2), bounds=(0.05, 5), method="bounded").x
    )


def centred(weights: Array, used: Array) -> Array:
    """Return the same evaluation with mobility tables of mean zero: the rest of a piece's value goes to its squares."""
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
