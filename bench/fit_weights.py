"""Fit the evaluation weights from engine games, by Texel's method, and write them as `core/weights.py`.

    python bench/fit_weights.py TUNING_FILE.xz [--out core/weights.py] [--seed S] [--mix L]
        [--pull-material P]

The file holds one position a line: `FEN;score;result`, score in centipawns and result 1, 0.5 or 0, both
seen from White. Nothing else goes in: every weight starts at plain material or at zero.

**The model.** E = M + R in centipawns, White minus Black. M is material and piece-square tables, R is
pawns, rooks, mobility and king (`TERMS`). Every weight is a pair (mg, eg), and the game phase blends the
two: `(mg * phase + eg * (24 - phase)) / 24`.

**The fit.** E predicts the expected score as `1 / (1 + 10 ** (-K * E / 400))`. The weights minimise the
mean squared error against a target that mixes the game's result with the engine's own score, the latter
turned into an expected score by the K that predicts results best. Results alone are unbiased but noisy (57%
are draws); scores alone say most about a single position but repeat the taste of the engines that played.
Half and half lies between: fitted to results, to the mix, to scores (before the material pull below, K
refitted to each), the held-out error against results was 0.08264, 0.08291, 0.08362 and against scores
0.03506, 0.03452, 0.03432.

**Colour flip.** White wins twice as often in this data. The model has no constant and no term for the side
to move, so a flipped position has exactly -E and its target exactly 1 - t: it adds the same squared error
again and the same gradient. Hence flipping every position changes nothing in the sums, and the fit counts
each position once. `check_flip` checks the premise on the file's first 20,000 positions.

**Regularisation.** Squares that pieces rarely see are pulled to the mean of the piece's table, to their
neighbours, and (pawn, knight, bishop, rook) to the square mirrored left to right; the bonuses of passed
pawns to those of the next rank, and none of them below zero. A common square does not feel this. The
middle-game king hardly ever leaves his first ranks, and mere smoothness would say that he may: for him
smooth means KING_SLOPE.

The mean of each table is pulled to plain material, and that is a choice against the data. TCEC engines do
not stay a piece down in the middle game without compensation: with 19 to 24 points of phase left, the side
ahead by a minor piece or more has a mean score of +33. Fitted freely, a middle-game rook falls below a
bishop. A search, however, asks about positions where a piece is simply lost. Held-out error and the mean of
mg and eg (pawn 100) by strength, measured before the two rules for passed pawns and kings were added:

    pull   error     knight  bishop  rook  queen  (rook mg, eg)
    1e-9   0.04572      444     472   676   1346     339, 1013
    1e-8   0.04628      437     466   670   1323     565,  776
    1e-7   0.04674      388     403   620   1159     606,  635
    2e-7   0.04694      361     370   586   1078     579,  593
    1e-6   0.04732      316     318   524    948     523,  525

Only matches can choose among these; until then 2e-7.

All randomness is the held-out tenth, drawn with the seed. Copies of a position fall on one side of that
split; the file does not name games, so positions of one game may fall on both.
"""

from __future__ import annotations

import argparse
import lzma
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numba
import numpy as np
from scipy.optimize import minimize, minimize_scalar

Array = np.ndarray[Any, Any]

# An offline script: not a kernel of the engine, so it does not go through core/jit.py and leaves no cache.
njit = numba.njit(error_model="numpy")

PAWN, KNIGHT, BISHOP, ROOK, QUEEN, KING = range(6)
PIECES = ("pawn", "knight", "bishop", "rook", "queen", "king")
PHASE = (0, 1, 1, 2, 4, 0)
PHASE_MAX = 24
MATERIAL = (100, 300, 300, 500, 900, 0)  # the start of the fit, and the baseline that it is compared with
SCORE_MAX = 1500  # cp; beyond this a position is decided and teaches nothing
HELD_OUT = 10  # one position in so many

N_PSQT = 6 * 64
# Columns of R: name -> (first column, number of columns).
TERMS = {
    "BISHOP_PAIR": (0, 1),
    "DOUBLED": (1, 1),
    "ISOLATED": (2, 1),
    "PASSED": (3, 6),  # by relative rank 2..7
    "ROOK_OPEN": (9, 1),
    "ROOK_SEMI_OPEN": (10, 1),
    "MOBILITY": (11, 4),  # knight, bishop, rook, queen
    "KING_RING": (15, 4),  # the same, as attackers
    "SHIELD": (19, 1),
}
N_TERMS = 20
BISHOP_PAIR, DOUBLED, ISOLATED, PASSED, ROOK_OPEN, ROOK_SEMI_OPEN, MOBILITY, KING_RING, SHIELD = (
    first for first, _ in TERMS.values()
)
MOBILITY_CENTRE = (4, 6, 7, 13)  # squares at which mobility counts zero

# Strength of the pulls: added to the mean squared error per squared centipawn.
PULL_MATERIAL = 2e-7  # a piece's mean in the data, to MATERIAL
PULL_MEAN = 2e-10  # a square, to the mean of its table
PULL_NEIGHBOUR = 1e-9  # a square, to those beside, above and below it
PULL_MIRROR = 2e-9  # a square, to its mirror image
PULL_PASSED = 3e-8  # passed pawns, to those of the next rank
KING_SLOPE = -30.0  # cp a rank: what smooth means for the middle-game king
K_STEP = 0.01  # the optimiser's unit for log K, so that its curvature resembles the weights'

_CENTRE = np.array((0, 4, 6, 7, 13), dtype=np.int64)  # MOBILITY_CENTRE by piece type
_KNIGHT_STEPS = np.array(((1, 2), (2, 1), (2, -1), (1, -2), (-1, -2), (-2, -1), (-2, 1), (-1, 2)))
# The first four are a rook's, the last four a bishop's, all eight a queen's.
_RAYS = np.array(((0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (1, -1), (-1, 1), (-1, -1)))


# --- Positions ------------------------------------------------------------------------------------------


@njit
def parse_board(text: Array, start: int, board: Array) -> int:
    """Fill board (a1 = 0, white +1..+6, black negative) from the FEN at text[start]; the mover, 1 or -1."""
    board[:] = 0
    square = 56
    at = start
    while text[at] != 32:
        c = text[at]
        if c == 47:  # "/"
            square -= 16
        elif 49 <= c <= 56:  # "1".."8"
            square += c - 48
        else:
            lower = c | 32
            kind = 0
            if lower == 112:
                kind = 1  # p
            elif lower == 110:
                kind = 2  # n
            elif lower == 98:
                kind = 3  # b
            elif lower == 114:
                kind = 4  # r
            elif lower == 113:
                kind = 5  # q
            elif lower == 107:
                kind = 6  # k
            board[square] = kind if c < 97 else -kind
            square += 1
        at += 1
    return 1 if text[at + 1] == 119 else -1


@njit
def attacks(board: Array, square: int, attacked: Array) -> int:
    """List the squares that the piece (not pawn, not king) on a square attacks, own men too; their number."""
    kind = abs(board[square]) - 1
    rank, file = square >> 3, square & 7
    n = 0
    if kind == KNIGHT:
        for i in range(8):
            r, f = rank + _KNIGHT_STEPS[i, 0], file + _KNIGHT_STEPS[i, 1]
            if 0 <= r < 8 and 0 <= f < 8:
                attacked[n] = 8 * r + f
                n += 1
        return n
    first = 4 if kind == BISHOP else 0
    last = 4 if kind == ROOK else 8
    for i in range(first, last):
        r, f = rank + _RAYS[i, 0], file + _RAYS[i, 1]
        while 0 <= r < 8 and 0 <= f < 8:
            attacked[n] = 8 * r + f
            n += 1
            if board[8 * r + f] != 0:
                break
            r += _RAYS[i, 0]
            f += _RAYS[i, 1]
    return n


@njit
def pawn_terms(board: Array, square: int, side: int, row: Array) -> None:
    """Add the terms of the pawn of a side on a square to a row of R."""
    file = square & 7
    doubled = False
    passed = True
    isolated = True
    for f in range(max(0, file - 1), min(7, file + 1) + 1):
        for r in range(1, 7):
            man = board[8 * r + f]
            in_front = (r - (square >> 3)) * side > 0
            if man == side:
                if f != file:
                    isolated = False
                elif in_front:
                    doubled = True
            elif man == -side and in_front:
                passed = False
    if doubled:
        row[DOUBLED] += side
    if isolated:
        row[ISOLATED] += side
    if passed and not doubled:
        rank = (square >> 3) if side > 0 else 7 - (square >> 3)
        row[PASSED + rank - 1] += side


@njit
def terms(board: Array, to_move: int, row: Array) -> bool:
    """Fill the row of R for a board: White's counts minus Black's. True if the side to move is in check."""
    row[:] = 0
    king = np.zeros(3, dtype=np.int64)  # by side + 1
    bishops = np.zeros(3, dtype=np.int64)
    pawns_on = np.zeros((3, 8), dtype=np.int64)
    pawn_hits = np.zeros((3, 64), dtype=np.bool_)  # squares that pawns of the side attack
    attacked = np.empty(64, dtype=np.int64)
    in_check = False
    for square in range(64):
        man = board[square]
        if man == 0:
            continue
        side = 1 if man > 0 else -1
        kind = abs(man) - 1
        file = square & 7
        if kind == KING:
            king[side + 1] = square
        elif kind == BISHOP:
            bishops[side + 1] += 1
        elif kind == PAWN:
            pawns_on[side + 1, file] += 1
            if file > 0:
                pawn_hits[side + 1, square + 8 * side - 1] = True
            if file < 7:
                pawn_hits[side + 1, square + 8 * side + 1] = True

    for side in (1, -1):
        me, other = side + 1, 1 - side
        their_king = king[other]
        if bishops[me] >= 2:
            row[BISHOP_PAIR] += side
        if to_move == -side and pawn_hits[me, their_king]:
            in_check = True

        # Pawn shield: own pawns on the king's file and those beside it, one and two ranks in front of it.
        rank, file = king[me] >> 3, king[me] & 7
        for step in (1, 2):
            r = rank + step * side
            if 0 <= r < 8:
                for f in range(max(0, file - 1), min(7, file + 1) + 1):
                    if board[8 * r + f] == side:
                        row[SHIELD] += side

        for square in range(64):
            man = board[square] * side
            if man <= 0:
                continue
            kind = man - 1
            if kind == PAWN:
                pawn_terms(board, square, side, row)
            if kind in (PAWN, KING):
                continue
            if kind == ROOK and pawns_on[me, square & 7] == 0:
                row[ROOK_OPEN if pawns_on[other, square & 7] == 0 else ROOK_SEMI_OPEN] += side
            mobile = 0
            ring = 0
            for i in range(attacks(board, square, attacked)):
                to = attacked[i]
                if board[to] * side <= 0 and not pawn_hits[other, to]:
                    mobile += 1
                if abs((to >> 3) - (their_king >> 3)) <= 1 and abs((to & 7) - (their_king & 7)) <= 1:
                    ring += 1
                if to == their_king and to_move == -side:
                    in_check = True
            row[MOBILITY + kind - 1] += side * (mobile - _CENTRE[kind])
            row[KING_RING + kind - 1] += side * ring
    return in_check


@njit
def extract(boards: Array, to_move: Array, psqt: Array, phase: Array, rest: Array, keep: Array) -> None:
    """Fill the features of each board; keep becomes false where the side to move is in check.

    psqt[i] lists up to 32 entries: +(1 + 64 * piece + square) for White, the negative for Black, then 0.
    """
    for i in range(len(boards)):
        n = 0
        total = 0
        for square in range(64):
            man = boards[i, square]
            if man == 0:
                continue
            kind = abs(man) - 1
            total += PHASE[kind]
            psqt[i, n] = 1 + 64 * kind + square if man > 0 else -(1 + 64 * kind + (square ^ 56))
            n += 1
        psqt[i, n:] = 0
        phase[i] = min(PHASE_MAX, total) / PHASE_MAX
        keep[i] = keep[i] and not terms(boards[i], to_move[i], rest[i])


@njit
def parse_boards(text: Array, starts: Array, boards: Array, to_move: Array) -> None:
    """Parse the FEN at each start."""
    for i in range(len(starts)):
        to_move[i] = parse_board(text, starts[i], boards[i])


@dataclass(frozen=True)
class Data:
    """Features and outcomes of N positions, all seen from White."""

    psqt: Array  # int16[N, 32], see extract
    phase: Array  # float64[N], 1 = all pieces on the board, 0 = none
    rest: Array  # int8[N, N_TERMS]
    score: Array  # float64[N], the engine's, in cp
    result: Array  # float64[N], 0, 0.5 or 1

    def __len__(self) -> int:
        """N."""
        return len(self.phase)

    def __getitem__(self, which: Array) -> Data:
        """The positions that an index array or mask names."""
        return Data(self.psqt[which], self.phase[which], self.rest[which], self.score[which], self.result[which])


def features(boards: Array, to_move: Array) -> tuple[Array, Array, Array, Array]:
    """psqt, phase, rest and keep (see extract) of int8[N, 64] boards."""
    n = len(boards)
    psqt, phase = np.zeros((n, 32), np.int16), np.zeros(n)
    rest, keep = np.zeros((n, N_TERMS), np.int8), np.ones(n, np.bool_)
    extract(boards, to_move, psqt, phase, rest, keep)
    return psqt, phase, rest, keep


def check_flip(boards: Array, to_move: Array) -> None:
    """Raise unless swapping the colours negates every feature (so that the fit need not see both)."""
    flipped = -boards.reshape(-1, 8, 8)[:, ::-1, :].reshape(-1, 64)
    psqt, phase, rest, keep = features(boards, to_move)
    psqt_f, phase_f, rest_f, keep_f = features(flipped, -to_move)
    same = np.array_equal(np.sort(psqt, axis=1), np.sort(-psqt_f, axis=1)) and np.array_equal(rest, -rest_f)
    if not (same and np.array_equal(phase, phase_f) and np.array_equal(keep, keep_f)):
        raise AssertionError("the features are not antisymmetric under a colour flip")


def load(path: Path, seed: int) -> tuple[Data, Data, int]:
    """Training set, held-out set, and the number of lines in the file."""
    with lzma.open(path) as file:
        lines = file.read().splitlines()
    text = np.frombuffer(b"\n".join(lines), dtype=np.uint8)
    starts = np.concatenate(([0], np.cumsum([len(line) + 1 for line in lines])[:-1]))
    boards, to_move = np.zeros((len(lines), 64), np.int8), np.zeros(len(lines), np.int64)
    parse_boards(text, starts, boards, to_move)
    outcome = np.array([line.split(b";")[1:] for line in lines]).astype(np.float64)

    check_flip(boards[:20_000], to_move[:20_000])
    psqt, phase, rest, keep = features(boards, to_move)
    keep &= np.abs(outcome[:, 0]) <= SCORE_MAX

    # Copies of a board share their draw.
    _, board_id = np.unique(boards.view("V64").ravel(), return_inverse=True)
    held = np.random.default_rng(seed).integers(HELD_OUT, size=board_id.max() + 1)[board_id] == 0
    data = Data(psqt, phase, rest, outcome[:, 0], outcome[:, 1])
    return data[keep & ~held], data[keep & held], len(lines)


# --- The model ------------------------------------------------------------------------------------------
# A weight vector is float64[2, N_PSQT + N_TERMS]: row 0 mg, row 1 eg; columns 64 * piece + square, then R.


@njit
def evaluate(psqt: Array, phase: Array, rest: Array, weights: Array, out: Array) -> None:
    """E of each position, in cp."""
    for i in range(len(phase)):
        mg = 0.0
        eg = 0.0
        for j in range(32):
            code = psqt[i, j]
            if code == 0:
                break
            if code > 0:
                mg += weights[0, code - 1]
                eg += weights[1, code - 1]
            else:
                mg -= weights[0, -code - 1]
                eg -= weights[1, -code - 1]
        for j in range(N_TERMS):
            mg += rest[i, j] * weights[0, N_PSQT + j]
            eg += rest[i, j] * weights[1, N_PSQT + j]
        out[i] = mg * phase[i] + eg * (1.0 - phase[i])


@njit
def accumulate(psqt: Array, phase: Array, rest: Array, slope: Array, grad: Array) -> None:
    """Add slope (the derivative by E of each position) to the weights that made E."""
    for i in range(len(phase)):
        mg = slope[i] * phase[i]
        eg = slope[i] - mg
        for j in range(32):
            code = psqt[i, j]
            if code == 0:
                break
            if code > 0:
                grad[0, code - 1] += mg
                grad[1, code - 1] += eg
            else:
                grad[0, -code - 1] -= mg
                grad[1, -code - 1] -= eg
        for j in range(N_TERMS):
            grad[0, N_PSQT + j] += rest[i, j] * mg
            grad[1, N_PSQT + j] += rest[i, j] * eg


def predict(data: Data, weights: Array) -> Array:
    """E of each position, in cp."""
    out = np.empty(len(data))
    evaluate(data.psqt, data.phase, data.rest, np.ascontiguousarray(weights, dtype=np.float64), out)
    return out


def expected(cp: Array, k: float) -> Array:
    """Expected score (0..1) of a centipawn score."""
    return 1.0 / (1.0 + 10.0 ** (-k / 400.0 * cp))


def fit_k(cp: Array, target: Array) -> float:
    """The K whose expected score is nearest to the target."""
    return float(
        minimize_scalar(lambda k: np.mean((target - expected(cp, k)) ** 2), bounds=(0.05, 5), method="bounded").x
    )


def pull(weights: Array, used: Array, pull_material: float) -> tuple[float, Array]:
    """The regularisation, and its gradient. used as from `occurrence`."""
    tables = weights[:, :N_PSQT].reshape(2, 6, 8, 8)
    grad = np.zeros_like(weights)
    grad_tables = grad[:, :N_PSQT].reshape(2, 6, 8, 8)
    loss = 0.0
    for kind in range(6):
        ranks = slice(1, 7) if kind == PAWN else slice(0, 8)
        t, g = tables[:, kind, ranks], grad_tables[:, kind, ranks]
        mean = t.mean(axis=(1, 2), keepdims=True)
        off = t - mean
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
    shares = used.reshape(2, 6, 64) / used.reshape(2, 6, 64).sum(axis=2, keepdims=True)
    grad[:, :N_PSQT] += (2 * pull_material * off[:, :, None] * shares).reshape(2, N_PSQT)
    passed, grad_passed = weights[:, N_PSQT + PASSED :][:, :6], grad[:, N_PSQT + PASSED :][:, :6]
    step = np.diff(passed, axis=1)
    loss += PULL_PASSED * np.sum(step**2)
    grad_passed[:, 1:] += 2 * PULL_PASSED * step
    grad_passed[:, :-1] -= 2 * PULL_PASSED * step
    return loss, grad


def material_only() -> Array:
    """Weights of plain material, all else zero."""
    weights = np.zeros((2, N_PSQT + N_TERMS))
    for kind, value in enumerate(MATERIAL):
        ranks = slice(8, 56) if kind == PAWN else slice(0, 64)
        weights[:, 64 * kind : 64 * kind + 64][:, ranks] = value
    return weights


def occurrence(data: Data) -> Array:
    """How often each table entry was used, weighted by phase: float64[2, N_PSQT]."""
    used = np.zeros((2, N_PSQT + 1))
    codes = np.abs(data.psqt)
    for row, weight in enumerate((data.phase, 1.0 - data.phase)):
        used[row] = np.bincount(codes.ravel(), weights=np.repeat(weight, 32), minlength=N_PSQT + 1)
    return used[:, 1:]


def fit(data: Data, target: Array, k: float, with_rest: bool, pull_material: float) -> tuple[Array, float]:
    """The weights and K with the least mean squared error plus pull, from plain material and k (L-BFGS)."""
    start = material_only()
    free = np.ones(start.shape, dtype=bool)
    free[:, :8] = free[:, 56:64] = False  # pawns never stand on their first or last rank
    free[:, N_PSQT:] = with_rest
    # In units in which each weight has about the same curvature: rare squares would converge last otherwise.
    used = occurrence(data)
    spread = np.concatenate((used, np.zeros((2, N_TERMS))), axis=1)
    for row, weight in enumerate((data.phase, 1.0 - data.phase)):
        spread[row, N_PSQT:] = (data.rest.astype(np.float64) ** 2).T @ weight**2
    scale = (1.0 / np.sqrt(spread / len(data) + 1e-3))[free]

    def loss(x: Array) -> tuple[float, Array]:
        weights = start.copy()
        weights[free] += x[:-1] * scale
        k_now = k * np.exp(K_STEP * x[-1])
        cp = predict(data, weights)
        p = expected(cp, k_now)
        error = p - target
        slope = 2.0 / len(data) * error * p * (1.0 - p) * k_now * np.log(10) / 400.0
        grad = np.zeros_like(weights)
        accumulate(data.psqt, data.phase, data.rest, slope, grad)
        extra, extra_grad = pull(weights, used, pull_material)
        # Per 1e-6 of squared error: the optimiser's tolerances then mean something.
        value = 1e6 * (float(np.mean(error**2)) + extra)
        return value, 1e6 * np.append((grad + extra_grad)[free] * scale, K_STEP * (slope @ cp))

    lower = np.full(start.shape, -np.inf)
    lower[:, N_PSQT + PASSED : N_PSQT + PASSED + 6] = 0.0
    bounds = [(low if np.isfinite(low) else None, None) for low in (lower - start)[free] / scale] + [(None, None)]
    options = {"maxiter": 2000, "maxfun": 2500, "maxcor": 30, "ftol": 1e-10, "gtol": 1e-4}
    best = minimize(loss, np.zeros(len(bounds)), jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    if not best.success:
        raise RuntimeError(f"the fit did not converge: {best.message}")
    weights = start
    weights[free] += best.x[:-1] * scale
    return weights, k * float(np.exp(K_STEP * best.x[-1]))


def normalise(weights: Array, data: Data) -> tuple[Array, float]:
    """Weights scaled so that the mean pawn is worth 100 cp, with kings worth 0 on average; and the factor.

    The pawn is the average of its mg and eg means over the pawns in the data. The king's mean cancels in E,
    since both sides have one.
    """
    used = occurrence(data)
    means = table_means(weights, used)
    weights = weights.copy()
    weights[:, 64 * KING : 64 * KING + 64] -= means[:, KING : KING + 1]
    factor = 100.0 / means[:, PAWN].mean()
    return weights * factor, factor


def table_means(weights: Array, used: Array) -> Array:
    """Mean value of each piece in the data: float64[2, 6]."""
    tables, used = weights[:, :N_PSQT].reshape(2, 6, 64), used.reshape(2, 6, 64)
    return (tables * used).sum(axis=2) / used.sum(axis=2)


# --- The generated file ---------------------------------------------------------------------------------


def board_rows(values: Array, indent: str) -> str:
    """64 numbers as eight lines of eight, rank 1 first."""
    return "\n".join(indent + " ".join(f"{v:4d}," for v in rank) for rank in values.reshape(8, 8))


def render(weights: Array, summary: str) -> str:
    """The text of core/weights.py for whole-number weights."""
    lines = [
        f'"""{summary}"""',
        "",
        "# Game phase that each piece adds: pawn, knight, bishop, rook, queen, king.",
    ]
    lines += [f"PHASE = {PHASE}", ""]
    for row, name, phase in ((0, "PSQT_MG", "Middle-game"), (1, "PSQT_EG", "End-game")):
        lines += [
            f"# {phase} value of each piece on each square, material included, White's view. Read each table",
            "# as a board upside down: the first line is rank 1, a1 to h1. A black piece reads square ^ 56.",
            "# fmt: off",
            f"{name} = (",
        ]
        for kind, piece in enumerate(PIECES):
            table = weights[row, 64 * kind : 64 * kind + 64]
            lines += [f"    (  # {piece}", board_rows(table, "        "), "    ),"]
        lines += [")", "# fmt: on", ""]

    def pairs(name: str) -> list[str]:
        first, count = TERMS[name]
        return [f"({weights[0, N_PSQT + j]}, {weights[1, N_PSQT + j]})" for j in range(first, first + count)]

    lines.append("# The rest: pairs (middle-game, end-game), per case, own minus the opponent's.")
    notes = {
        "BISHOP_PAIR": "two bishops or more",
        "DOUBLED": "a pawn with an own pawn in front of it on its file",
        "ISOLATED": "a pawn without own pawns on the adjacent files",
        "PASSED": "a passed pawn, by relative rank 0..7",
        "ROOK_OPEN": "a rook on a file without pawns",
        "ROOK_SEMI_OPEN": "a rook on a file with enemy pawns only",
        "MOBILITY": "knight, bishop, rook, queen: per attacked square that holds no own man and that no\n"
        "# enemy pawn attacks, above MOBILITY_CENTRE",
        "KING_RING": "knight, bishop, rook, queen: per attacked square among the enemy king's and the\n"
        "# (up to) eight around it, for the attacker",
        "SHIELD": "an own pawn on the king's file or beside it, one or two ranks in front of the king",
    }
    for name, note in notes.items():
        values = pairs(name)
        if name == "PASSED":
            values = ["(0, 0)", *values, "(0, 0)"]
        lines.append(f"# {note[0].upper()}{note[1:]}.")
        lines.append(f"{name} = " + (values[0] if len(values) == 1 else f"({', '.join(values)})"))
        if name == "MOBILITY":
            lines.append(f"MOBILITY_CENTRE = {MOBILITY_CENTRE}")
    return "\n".join(lines) + "\n"


# --- The program ----------------------------------------------------------------------------------------


def error(data: Data, weights: Array, k: float, target: Array) -> float:
    """Mean squared error of the expected score."""
    return float(np.mean((target - expected(predict(data, weights), k)) ** 2))


def main() -> None:
    """Fit, print the errors, and write the weights."""
    parser = argparse.ArgumentParser(description="Fit the evaluation weights (see the head of this file).")
    parser.add_argument("tuning_file", type=Path, help="FEN;score;result lines, xz-compressed")
    default = Path(__file__).resolve().parents[1] / "core" / "weights.py"
    parser.add_argument("--out", type=Path, default=default, help="where to write (default: core/weights.py)")
    parser.add_argument("--seed", type=int, default=1, help="draws the held-out tenth")
    parser.add_argument("--mix", type=float, default=0.5, help="share of the result in the target; the rest is score")
    parser.add_argument("--pull-material", type=float, default=PULL_MATERIAL, help="pull to plain material, > 0")
    args = parser.parse_args()

    train, held, n_lines = load(args.tuning_file, args.seed)
    k_score = fit_k(train.score, train.result)

    def target(data: Data) -> Array:
        return args.mix * data.result + (1.0 - args.mix) * expected(data.score, k_score)

    t_train, t_held = target(train), target(held)
    print(f"{n_lines} lines, {len(train)} to fit, {len(held)} held out; K of the engines' scores {k_score:.3f}")

    def report(name: str, weights: Array, k: float) -> float:
        value = error(held, weights, k, t_held)
        print(
            f"{name:14s} K {k:.3f}  held-out error {value:.6f}"
            f"  (fitted on {error(train, weights, k, t_train):.6f};"
            f" against results alone {error(held, weights, k, held.result):.6f},"
            f" scores alone {error(held, weights, k, expected(held.score, k_score)):.6f})"
        )
        return value

    k = fit_k(predict(train, material_only()), t_train)
    before = report("material", material_only(), k)
    after = {}
    for name, with_rest in (("M", False), ("M + R", True)):
        raw, k_raw = fit(train, t_train, k, with_rest, args.pull_material)
        weights, factor = normalise(raw, train)
        whole = np.rint(weights).astype(np.int64)
        after[name] = report(name, whole, k_raw / factor)

    means = table_means(whole, occurrence(train))
    for kind, piece in enumerate(PIECES):
        print(f"{piece:7s} mean mg {means[0, kind]:7.1f}  eg {means[1, kind]:7.1f}")
    for name, (first, count) in TERMS.items():
        print(
            f"{name:15s}",
            *(f"({mg}, {eg})" for mg, eg in whole[:, N_PSQT + first : N_PSQT + first + count].T),
        )
    size = whole.copy()
    size[:, :N_PSQT] = 0
    print(
        "|R| in cp, 50/90/99/99.9/100%:",
        np.percentile(np.abs(predict(held, size)), (50, 90, 99, 99.9, 100)).round(),
    )

    body = (
        f"Fitted to {len(train)} quiet positions from TCEC games ({args.tuning_file.name}; from"
        " TCEC-Chess/tcecgames, attribution: TCEC organization, CC BY-SA 3.0), with seed"
        f" {args.seed}, target {args.mix:g} result + {1 - args.mix:g} score, material pull"
        f" {args.pull_material:g}. Mean squared error of the expected score"
        f" 1 / (1 + 10 ** (-{k_raw / factor:.3f} * E / 400)) on"
        f" {len(held)} held-out positions: {before:.6f} for material alone (100/300/300/500/900),"
        f" {after['M']:.6f} for tables fitted alone, and {after['M + R']:.6f} for tables"
        " and rest, which are these weights."
    )
    head = "The evaluation's weights in centipawns. Generated by bench/fit_weights.py; do not edit."
    summary = f"{head}\n\n{textwrap.fill(body, 108)}\n"
    args.out.write_text(render(whole, summary))


if __name__ == "__main__":
    main()
