"""Regularisation: what is added to the squared error, so that what the data hardly shows stays sensible.

Squares that pieces rarely see are pulled to the mean of the piece's table, to their neighbours, and to the square
mirrored left to right; weights that form a row (mobility, ranks, danger) to those beside them; the means of mobility
tables, and all terms that form no such table, to zero. For the middle-game king, who hardly ever leaves his first
ranks, smooth means KING_SLOPE.

The mean of each piece-square table is pulled to plain material: engines do not stay a piece down in the middle game
without compensation, and such positions alone would make a rook worth less than a bishop, while a search asks about
positions where a piece is simply lost. Games from positions with a piece taken off (`bench/training`) say the same by
their results.
"""

from __future__ import annotations

import numpy as np

from psearch_core.terms import TERMS

from .model import row_shares, table_means
from .weights import KING, MATERIAL, MOBILITY, N_PSQT, PAWN, QUEEN, Array

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
