"""Fit the evaluation's weights by Texel's method, and write them as `core/weights.py`.

    python bench/tune.py FILE [FILE ...] [--out core/weights.py] [--seed S] [--mix L] [--pull-material P]
        [--keep-units] [--current-only]

A file (text, or .xz) holds one position a line: `FEN;score;result`, score in centipawns and result 1, 0.5 or 0, both
seen from White. docs/evaluation.md says which files made the weights, and what came out.

**Captures first.** A position is replaced by the one at the end of the engine's own quiescence search (`resolve`):
the static evaluation is asked about quiet positions only.

**Features from the evaluation itself.** The terms are linear in their weights. `trace` sets the weights to powers of
1,024 and calls the kernel `terms_of`: the digits of what it returns are the counts of three terms at a time. So there
is no second version of the evaluation that could differ from it, except for the sum, the king's danger and the
scaling, which `tests/test_tune.py` compares with the kernel to the centipawn.

**The model.** E = s (M + R), White minus Black; every weight is a pair (mg, eg), blended by the phase. s, the scale of
endings, is taken from the kernel. Danger to a king is looked up in a table of free weights; the units that are looked
up are sums of whole numbers. First everything is fitted together, with units that need not be whole and a table that
is interpolated; then the units are rounded and all else is fitted again, exactly as the kernel computes it.

**The fit.** E predicts the expected score as `1 / (1 + 10 ** (-K * E / 400))`. The weights minimise the mean squared
error against a target that mixes the game's result with the engine's own score, the latter turned into an expected
score by the K that predicts the results of its file best. L-BFGS with gradients; the error reported is that of a tenth
that was not fitted. Files may name positions of one game on several lines: those may fall on both sides.

**Colour flip.** A flipped position has exactly -E and its target exactly 1 - t: it adds the same squared error again
and the same gradient. So each position is counted once, and White's better results in the file bend nothing.

**Regularisation.** Squares that pieces rarely see are pulled to the mean of the piece's table, to their neighbours,
and to the square mirrored left to right; weights that form a row (mobility, ranks, danger) to those beside them; the
means of mobility tables, and all terms that form no such table, to zero. For the middle-game king, who hardly ever
leaves his first ranks, smooth means KING_SLOPE. The mean of each piece-square table is pulled to plain material:
engines do not stay a piece down in the middle game without compensation, and such positions alone would make a rook
worth less than a bishop, while a search asks about positions where a piece is simply lost. Games from positions with a
man taken off (`bench/selfplay_positions.py`) say the same by their results.
"""

from __future__ import annotations

import argparse
import lzma
import textwrap
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numba
import numpy as np
from scipy.optimize import minimize, minimize_scalar

from psearch.core import weights as current_weights
from psearch.core.constants import U0
from psearch.core.endgames import SCALE_FULL, SCALING_PHASE, scale
from psearch.core.evaluate import PHASE_MAX, evaluate, terms_of
from psearch.core.evaluate_king import danger_units
from psearch.core.evaluate_pawns import fill_pawn_entry, pawn_slot
from psearch.core.movegen import generate_captures
from psearch.core.position import complete, find_pins, make_move
from psearch.core.records import (
    FRAME_SIZE,
    evaluation_at,
    evaluation_dtype,
    frame_at,
    frame_dtype,
    position_at,
    position_dtype,
    tables_at,
)
from psearch.core.see import see_at_least
from psearch.core.tables import make_tables
from psearch.core.terms import DANGER, DANGER_STEP, DANGER_STEPS, TERM_COUNT, TERMS, UNIT_COUNT, UNITS, Term
from psearch.kernels import load_kernels

Array = np.ndarray[Any, Any]

# An offline script: not kernels of the engine, so they do not go through core/jit.py and leave no cache.
njit = numba.njit(error_model="numpy", fastmath=True)

PIECES = ("pawn", "knight", "bishop", "rook", "queen", "king")
PAWN, KNIGHT, BISHOP, ROOK, QUEEN, KING = range(6)
MATERIAL = (100, 300, 300, 500, 900, 0)  # the start of the fit, and the baseline that it is compared with
SCORE_MAX = 1500  # cp; beyond this a position is decided and teaches nothing
HELD_OUT = 10  # one position in so many
QUIESCENCE_PLIES = 16
POSITION_SIZE = position_dtype.itemsize
POSITION_OFFSET = frame_dtype.fields["position"][1]  # type: ignore[index]  # a record has fields

N_PSQT = 6 * 64
# Columns of a weight vector float64[2, N_COLUMNS]: 64 * piece + square, then TERMS. Row 0 mg, row 1 eg.
N_COLUMNS = N_PSQT + TERM_COUNT
DANGER_COLUMN = N_PSQT + DANGER
MOST_FEATURES = 160  # non-zero ones of a position

# Strength of the pulls: added to the mean squared error per squared centipawn.
PULL_MATERIAL = 2e-8  # a piece's mean in the data, to MATERIAL
PULL_MEAN = 2e-10  # a square, to the mean of its table
PULL_NEIGHBOUR = 1e-9  # a square, to those beside, above and below it
PULL_MIRROR = 2e-9  # a square, to its mirror image
PULL_ZERO = 2e-10  # a term, to nothing
PULL_ROW = 3e-9  # terms that form a row, to those beside them
PULL_ROW_MEAN = 1e-5  # the mean of a mobility table in the data, to nothing
KING_SLOPE = -30.0  # cp a rank: what smooth means for the middle-game king
K_STEP = 0.01  # the optimiser's unit for log K, so that its curvature resembles the weights'
UNIT_STEP = 3.0  # and for units of danger

MOBILITY = ("MOBILITY_KNIGHT", "MOBILITY_BISHOP", "MOBILITY_ROOK", "MOBILITY_QUEEN")
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


# --- Positions ------------------------------------------------------------------------------------------------------


@njit
def parse_board(text: Array, start: int, board: Array) -> int:
    """Fill board codes from the FEN at text[start]; the side to move, 0 or 1."""
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
            code = 1  # p
            if lower == 110:
                code = 2  # n
            elif lower == 98:
                code = 3  # b
            elif lower == 114:
                code = 4  # r
            elif lower == 113:
                code = 5  # q
            elif lower == 107:
                code = 6  # k
            board[square] = code if c < 97 else code + 8
            square += 1
        at += 1
    return 0 if text[at + 1] == 119 else 1


@njit
def parse_boards(text: Array, starts: Array, positions: Array) -> None:
    """Parse the FEN at each start; castling and en passant are left out."""
    for i in range(len(starts)):
        positions[i].side = parse_board(text, starts[i], positions[i].board)
        positions[i].ep = -1


@numba.njit
def quiesce(tables, evaluation, frames, ply, alpha, beta, leaf):  # type: ignore[no-untyped-def]  # numba finds the types
    """The engine's quiescence as far as it has no check to answer; the line's last position goes to leaf[ply]."""
    tb = tables_at(tables)
    frame = frame_at(frames + ply * FRAME_SIZE)
    pos = frame.position
    best = evaluate(tb, evaluation_at(evaluation), pos)
    leaf[ply, :64] = pos.board
    leaf[ply, 64] = pos.side
    if best >= beta or ply + 1 == QUIESCENCE_PLIES:
        return best
    alpha = max(alpha, best)
    find_pins(tb, pos)
    count = generate_captures(tb, pos, frame.node, 0)
    for i in range(count):
        move = np.int64(frame.node.moves[i]) & 0xFFFF
        if not see_at_least(tb, pos, move, 0):
            continue
        child = frame_at(frames + (ply + 1) * FRAME_SIZE)
        make_move(tb, pos, child.position, move)
        if child.position.checkers != U0:
            continue
        value = -quiesce(tables, evaluation, frames, ply + 1, -beta, -alpha, leaf)
        if value > best:
            best = value
            if value > alpha:
                alpha = value
                leaf[ply] = leaf[ply + 1]
                if value >= beta:
                    break
    return best


@numba.njit
def resolve_all(tables: int, evaluation: int, frames: int, positions: int, count: int, keep: Array) -> None:
    """Replace each position by the end of its quiescence line; keep becomes false in check."""
    leaf = np.zeros((QUIESCENCE_PLIES, 65), np.uint8)
    for i in range(count):
        pos = position_at(positions + i * POSITION_SIZE)
        if pos.checkers != U0:
            keep[i] = False
            continue
        root = frame_at(frames)
        root.position.board[:] = pos.board
        root.position.side = pos.side
        root.position.castling_bb = U0
        root.position.ep = -1
        complete(tables, frames + POSITION_OFFSET)
        quiesce(tables, evaluation, frames, 0, -32000, 32000, leaf)
        pos.board[:] = leaf[0, :64]
        pos.side = np.int32(leaf[0, 64])
        pos.castling_bb = U0
        complete(tables, positions + i * POSITION_SIZE)


@numba.njit
def trace_terms(tables: int, evaluation: int, positions: int, count: int, pairs: Array) -> None:
    """`terms_of` every position, with the pawn hash filled anew."""
    tb = tables_at(tables)
    ev = evaluation_at(evaluation)
    for i in range(count):
        pos = position_at(positions + i * POSITION_SIZE)
        slot = pawn_slot(tb, ev, pos)
        fill_pawn_entry(tb, ev.pawns[slot], pos)
        pairs[i] = terms_of(tb, ev, pos, slot)


@numba.njit
def trace_units(tables: int, evaluation: int, positions: int, count: int, units: Array) -> None:
    """The danger that each side is to the other's king."""
    tb = tables_at(tables)
    ev = evaluation_at(evaluation)
    for i in range(count):
        pos = position_at(positions + i * POSITION_SIZE)
        slot = pawn_slot(tb, ev, pos)
        fill_pawn_entry(tb, ev.pawns[slot], pos)
        terms_of(tb, ev, pos, slot)
        for side in range(2):
            units[i, side] = danger_units(tb, ev, ev.pawns[slot], pos, side)


@numba.njit
def trace_rest(tables: int, evaluation: int, positions: int, count: int, phase: Array, scales: Array) -> None:
    """Phase (1 all pieces, 0 none), and the scale if White or if Black is ahead (1 full, 0 a draw)."""
    tb = tables_at(tables)
    ev = evaluation_at(evaluation)
    for i in range(count):
        pos = position_at(positions + i * POSITION_SIZE)
        slot = pawn_slot(tb, ev, pos)
        points = min(np.int64(pos.phase), PHASE_MAX)
        phase[i] = points / PHASE_MAX
        for side in range(2):
            whole = points > SCALING_PHASE
            scales[i, side] = 1.0 if whole else scale(tb, pos, side, ev.pawns[slot].passed) / SCALE_FULL


@numba.njit
def list_squares(positions: Array, index: Array, value: Array, used: Array) -> None:
    """The features of the piece-square tables: index[i, :used[i]] with values 1 (White) and -1."""
    for i in range(len(positions)):
        n = 0
        for square in range(64):
            code = np.int64(positions[i].board[square])
            if code == 0:
                continue
            kind = (code & 7) - 1
            index[i, n] = 64 * kind + (square if code < 8 else square ^ 56)
            value[i, n] = 1 if code < 8 else -1
            n += 1
        used[i] = n


@numba.njit
def list_terms(pairs: Array, columns: Array, index: Array, value: Array, used: Array) -> None:
    """Split the digits of pairs traced with powers of 1,024 and append what is not zero."""
    for i in range(len(pairs)):
        left = pairs[i]
        for digit in range(len(columns)):
            low = left & 1023
            if low >= 512:
                low -= 1024
            left = (left - low) >> 10
            if low != 0:
                n = used[i]
                index[i, n] = columns[digit]
                value[i, n] = low
                used[i] = n + 1


@dataclass(frozen=True)
class Data:
    """Features and outcomes of N positions, all seen from White."""

    index: Array  # int16[N, MOST_FEATURES], columns
    value: Array  # int8[N, MOST_FEATURES], how often White has it more than Black
    used: Array  # int16[N], entries of the two before
    units: Array  # int16[N, 2, UNIT_COUNT], counts of what makes danger
    phase: Array  # float64[N], 1 = all pieces on the board, 0 = none
    scales: Array  # float64[N, 2], if White, if Black is ahead
    score: Array  # float64[N], the engine's, in cp
    result: Array  # float64[N], 0, 0.5 or 1
    source: Array  # int8[N], number of the file

    def __len__(self) -> int:
        """N."""
        return len(self.phase)

    def __getitem__(self, which: Array) -> Data:
        """The positions that an index array or mask names."""
        return Data(*(getattr(self, name)[which] for name in self.__dataclass_fields__))


_DIGITS = 3


def features(positions: Array, tables: Array) -> dict[str, Array]:
    """Everything of `Data` that the positions alone decide; tables as from `make_tables`, and not changed."""
    n = len(positions)
    made: dict[str, Array] = {
        "index": np.zeros((n, MOST_FEATURES), np.int16),
        "value": np.zeros((n, MOST_FEATURES), np.int8),
        "used": np.zeros(n, np.int16),
        "units": np.zeros((n, 2, UNIT_COUNT), np.int16),
        "phase": np.zeros(n),
        "scales": np.zeros((n, 2)),
    }
    own = tables.copy()
    evaluation = np.zeros(1, evaluation_dtype)
    addresses = own.ctypes.data, evaluation.ctypes.data, positions.ctypes.data, n
    trace_rest(*addresses, made["phase"], made["scales"])
    list_squares(positions, made["index"], made["value"], made["used"])
    pairs = np.zeros(n, np.int64)
    columns = [column for column in range(TERM_COUNT) if not DANGER <= column < DANGER + DANGER_STEPS]
    own["units"] = 0
    for first in range(0, len(columns), _DIGITS):
        some = np.array(columns[first : first + _DIGITS])
        own["terms"] = 0
        own["terms"][0, some] = 1024 ** np.arange(len(some))
        trace_terms(*addresses, pairs)
        list_terms(pairs, some + N_PSQT, made["index"], made["value"], made["used"])
    counts = np.zeros((n, 2), np.int64)
    for first in range(0, UNIT_COUNT, _DIGITS):
        own["units"] = 0
        width = min(_DIGITS, UNIT_COUNT - first)
        own["units"][0, first : first + width] = 1024 ** np.arange(width)
        trace_units(*addresses, counts)
        for digit in range(width):
            made["units"][:, :, first + digit] = (counts >> (10 * digit)) & 1023
    if made["used"].max() > MOST_FEATURES:
        raise AssertionError("MOST_FEATURES is too small")
    return made


def read_positions(path: Path) -> tuple[Array, Array]:
    """Positions as `position_dtype` (not completed), and (score, result) of each line."""
    with lzma.open(path) if path.suffix == ".xz" else path.open("rb") as file:
        lines = [line for line in file.read().splitlines() if line.count(b";") == 2]
    text = np.frombuffer(b"\n".join(lines), dtype=np.uint8)
    starts = np.concatenate(([0], np.cumsum([len(line) + 1 for line in lines])[:-1]))
    positions = np.zeros(len(lines), position_dtype)
    parse_boards(text, starts, positions)
    return positions, np.array([line.split(b";")[1:] for line in lines]).astype(np.float64)


def load(paths: list[Path], seed: int) -> tuple[Data, Data]:
    """Training set and held-out set. In check, decided beyond SCORE_MAX, or a dead draw by rule: left out."""
    tables = make_tables()
    evaluation, frames = np.zeros(1, evaluation_dtype), np.zeros(QUIESCENCE_PLIES + 1, frame_dtype)
    parts = []
    for number, path in enumerate(paths):
        positions, outcome = read_positions(path)
        for i in range(len(positions)):
            complete(tables.ctypes.data, positions.ctypes.data + i * POSITION_SIZE)
        keep = np.abs(outcome[:, 0]) <= SCORE_MAX
        addresses = tables.ctypes.data, evaluation.ctypes.data, frames.ctypes.data, positions.ctypes.data
        resolve_all(*addresses, len(positions), keep)
        positions, outcome = positions[keep], outcome[keep]
        made = features(positions, tables)
        source = np.full(len(positions), number, np.int8)
        data = Data(**made, score=outcome[:, 0], result=outcome[:, 1], source=source)
        # copies of a board share their draw
        _, board_id = np.unique(np.ascontiguousarray(positions["board"]).view("V64").ravel(), return_inverse=True)
        held = np.random.default_rng(seed).integers(HELD_OUT, size=board_id.max() + 1)[board_id] == 0
        alive = data.scales.max(axis=1) > 0
        parts.append((data[alive & ~held], data[alive & held]))
        print(f"{path.name}: {len(outcome)} positions, {int(alive.sum())} not drawn by rule")
    return tuple(  # type: ignore[return-value]  # two of them
        Data(*(np.concatenate([getattr(part[k], name) for part in parts]) for name in Data.__dataclass_fields__))
        for k in range(2)
    )


# --- The model ------------------------------------------------------------------------------------------------------


@njit
def forward(index: Array, value: Array, used: Array, phase: Array, weights: Array, out: Array) -> None:
    """M and the linear part of R of each position, in cp."""
    for i in range(len(phase)):
        mg = 0.0
        eg = 0.0
        for j in range(used[i]):
            mg += value[i, j] * weights[index[i, j], 0]
            eg += value[i, j] * weights[index[i, j], 1]
        out[i] = mg * phase[i] + eg * (1.0 - phase[i])


@njit
def backward(index: Array, value: Array, used: Array, phase: Array, slope: Array, grad: Array) -> None:
    """Add slope (the derivative by M + R of each position) to the weights that made it."""
    for i in range(len(phase)):
        mg = slope[i] * phase[i]
        eg = slope[i] - mg
        for j in range(used[i]):
            grad[index[i, j], 0] += value[i, j] * mg
            grad[index[i, j], 1] += value[i, j] * eg


@njit
def danger_forward(units: Array, phase: Array, unit_weights: Array, table: Array, smooth: bool, out: Array) -> None:
    """Add White's danger to Black's king, less Black's to White's."""
    for i in range(len(phase)):
        for side in range(2):
            total = 0.0
            for k in range(UNIT_COUNT):
                total += units[i, side, k] * unit_weights[k]
            at = min(max(total / DANGER_STEP - (0.5 if smooth else 0.0), 0.0), DANGER_STEPS - 1.0)
            low = int(at)
            part = at - low if smooth else 0.0
            high = min(low + 1, DANGER_STEPS - 1)
            mg = table[low, 0] * (1.0 - part) + table[high, 0] * part
            eg = table[low, 1] * (1.0 - part) + table[high, 1] * part
            term = mg * phase[i] + eg * (1.0 - phase[i])
            out[i] += term if side == 0 else -term


@njit
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
    """The derivatives that belong to `danger_forward`."""
    for i in range(len(phase)):
        for side in range(2):
            total = 0.0
            for k in range(UNIT_COUNT):
                total += units[i, side, k] * unit_weights[k]
            at = min(max(total / DANGER_STEP - (0.5 if smooth else 0.0), 0.0), DANGER_STEPS - 1.0)
            low = int(at)
            part = at - low if smooth else 0.0
            high = min(low + 1, DANGER_STEPS - 1)
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
    forward(data.index, data.value, data.used, data.phase, columns, out)
    table = columns[DANGER_COLUMN : DANGER_COLUMN + DANGER_STEPS]
    danger_forward(data.units, data.phase, np.asarray(units, np.float64), table, smooth, out)
    scales = np.where(out >= 0, data.scales[:, 0], data.scales[:, 1])
    return out * scales, scales


def expected(cp: Array, k: float) -> Array:
    """Expected score (0..1) of a centipawn score."""
    return 1.0 / (1.0 + 10.0 ** (-k / 400.0 * cp))


def fit_k(cp: Array, target: Array) -> float:
    """The K whose expected score is nearest to the target."""
    return float(
        minimize_scalar(lambda k: np.mean((target - expected(cp, k)) ** 2), bounds=(0.05, 5), method="bounded").x
    )


def occurrence(data: Data) -> Array:
    """How often each column was used, weighted by phase: float64[2, N_COLUMNS]; danger: by 1 step each."""
    used = np.zeros((N_COLUMNS, 2))
    backward(data.index, np.abs(data.value), data.used, data.phase, np.ones(len(data)), used)
    return used.T


def table_means(weights: Array, used: Array) -> Array:
    """Mean value of each piece in the data: float64[2, 6]."""
    tables, used = weights[:, :N_PSQT].reshape(2, 6, 64), used[:, :N_PSQT].reshape(2, 6, 64)
    return (tables * used).sum(axis=2) / used.sum(axis=2)


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


def row_shares(term: Term, used: Array) -> Array:
    """How often each weight of a row was used, of all its uses: float64[2, count]."""
    counts = used[:, N_PSQT + term.first : N_PSQT + term.first + term.count]
    return counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-9)


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


def material_only() -> Array:
    """Weights of plain material, all else zero."""
    weights = np.zeros((2, N_COLUMNS))
    for kind, value in enumerate(MATERIAL):
        ranks = slice(8, 56) if kind == PAWN else slice(0, 64)
        weights[:, 64 * kind : 64 * kind + 64][:, ranks] = value
    return weights


def weights_in_use() -> tuple[Array, Array]:
    """The weights and units of core/weights.py."""
    weights = np.zeros((2, N_COLUMNS))
    for row, tables in enumerate((current_weights.PSQT_MG, current_weights.PSQT_EG)):
        weights[row, :N_PSQT] = np.array(tables).ravel()
    for term in TERMS:
        pairs = np.array(current_weights.TERM_VALUES[term.name])
        weights[:, N_PSQT + term.first : N_PSQT + term.first + term.count] = pairs.T
    units = np.concatenate([np.array(current_weights.UNIT_VALUES[unit.name], dtype=np.float64) for unit in UNITS])
    return weights, units


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


@dataclass
class Fit:
    """What is being fitted: weights and K, and the units while `smooth`."""

    weights: Array
    units: Array
    k: float


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
    if not smooth:
        unpack_all = unpack

        def unpack(x: Array) -> Fit:
            return unpack_all(np.concatenate((x[:n_weights], x[-1:])))

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


# --- The generated file ---------------------------------------------------------------------------------------------


def board_rows(values: Array, indent: str) -> str:
    """64 numbers as eight lines of eight, rank 1 first."""
    return "\n".join(indent + " ".join(f"{v:4d}," for v in rank) for rank in values.reshape(8, 8))


def render(weights: Array, units: Array, summary: str) -> str:
    """The text of core/weights.py for whole-number weights."""
    lines = [
        f'"""{summary}"""',
        "",
        "# fmt: off",
        "# Game phase that each piece adds: pawn, knight, bishop, rook, queen, king.",
        f"PHASE = {current_weights.PHASE}",
        "",
    ]
    for row, name, phase in ((0, "PSQT_MG", "Middle-game"), (1, "PSQT_EG", "End-game")):
        lines += [
            f"# {phase} value of each piece on each square, material included, White's view. Read each table",
            "# as a board upside down: the first line is rank 1, a1 to h1. A black piece reads square ^ 56.",
            f"{name} = (",
        ]
        for kind, piece in enumerate(PIECES):
            table = weights[row, 64 * kind : 64 * kind + 64]
            lines += [f"    (  # {piece}", board_rows(table, "        "), "    ),"]
        lines += [")", ""]
    lines += ["# Pairs (middle game, end game); what each counts is said in core/terms.py.", "TERM_VALUES = {"]
    for term in TERMS:
        values = weights[:, N_PSQT + term.first : N_PSQT + term.first + term.count].T
        text = " ".join(f"({mg}, {eg})," for mg, eg in values)
        lines.append(textwrap.fill(f'"{term.name}": ({text}),', 112, initial_indent="    ", subsequent_indent=" " * 8))
    lines += ["}", "", "UNIT_VALUES = {"]
    for unit in UNITS:
        text = " ".join(f"{value}," for value in units[unit.first : unit.first + unit.count])
        lines.append(f'    "{unit.name}": ({text}),')
    lines += ["}", "# fmt: on"]
    return "\n".join(lines) + "\n"


# --- The program ----------------------------------------------------------------------------------------------------


def main() -> None:
    """Fit, print the errors, and write the weights."""
    parser = argparse.ArgumentParser(description="Fit the evaluation weights (see the head of this file).")
    parser.add_argument("files", type=Path, nargs="+", help="FEN;score;result lines, text or .xz")
    default = Path(__file__).resolve().parents[1] / "core" / "weights.py"
    parser.add_argument("--out", type=Path, default=default, help="where to write (default: core/weights.py)")
    parser.add_argument("--seed", type=int, default=1, help="draws the held-out tenth")
    parser.add_argument("--mix", type=float, default=0.5, help="share of the result in the target; the rest is score")
    parser.add_argument("--pull-material", type=float, default=PULL_MATERIAL, help="pull to plain material, > 0")
    parser.add_argument("--steps", type=int, default=400, help="most steps of the optimiser, in each of its two runs")
    parser.add_argument("--keep-units", action="store_true", help="leave the units of danger as they are")
    parser.add_argument(
        "--current-only", action="store_true", help="report the present weights' error and write nothing"
    )
    args = parser.parse_args()

    load_kernels()
    train, held = load(args.files, args.seed)
    k_score = [fit_k(train.score[part], train.result[part]) for part in sources(train)]

    def target(data: Data) -> Array:
        by_score = expected(data.score, np.array(k_score)[data.source])  # type: ignore[arg-type]  # numpy scalars among floats
        return args.mix * data.result + (1.0 - args.mix) * by_score

    t_train, t_held = target(train), target(held)
    print(f"{len(train)} to fit, {len(held)} held out; K of the scores {', '.join(f'{k:.3f}' for k in k_score)}")

    def report(name: str, now: Fit, smooth: bool = False) -> float:
        cp, _ = predict(held, now.weights, now.units, smooth)
        value = float(np.mean((t_held - expected(cp, now.k)) ** 2))
        each = " ".join(f"{np.mean((t_held[part] - expected(cp[part], now.k)) ** 2):.6f}" for part in sources(held))
        print(f"{name:22s} K {now.k:.3f}  held-out error {value:.6f}  (by file {each})", flush=True)
        return value

    in_use, units = weights_in_use()
    plain = Fit(material_only(), units, 1.0)
    plain.k = fit_k(predict(train, plain.weights, units)[0], t_train)
    before = report("material", plain)
    now = Fit(in_use, units, fit_k(predict(train, in_use, units)[0], t_train))
    present = report("weights in use", now)
    if args.current_only:
        return

    # the optimiser would take long to shift them itself, one against all the other
    start = replace(now, weights=centred(now.weights, occurrence(train)))
    if not args.keep_units:
        start = fit(train, t_train, start, True, args.pull_material, args.steps)
        report("fitted, smooth units", start, smooth=True)
    start = Fit(start.weights, np.rint(start.units), start.k)
    found = rounded(normalise(fit(train, t_train, start, False, args.pull_material, args.steps), train))
    after = report("fitted, whole numbers", found)

    means = table_means(found.weights, occurrence(train))
    for kind, piece in enumerate(PIECES):
        print(f"{piece:7s} mean mg {means[0, kind]:7.1f}  eg {means[1, kind]:7.1f}")
    size = found.weights.copy()
    size[:, :N_PSQT] = 0
    rest = np.abs(predict(held, size, found.units)[0])
    print("|R| in cp, 50/90/99/99.9/100%:", np.percentile(rest, (50, 90, 99, 99.9, 100)).round())

    body = (
        f"Fitted to {len(train)} quiet positions ({', '.join(path.name for path in args.files)}; the file"
        " tcec_positions is from TCEC-Chess/tcecgames, attribution: TCEC organization, CC BY-SA 3.0; others are"
        f" this engine's games against itself), with seed {args.seed}, target {args.mix:g} result +"
        f" {1 - args.mix:g} score, material pull {args.pull_material:g}. Mean squared error of the expected score"
        f" 1 / (1 + 10 ** (-{found.k:.3f} * E / 400)) on {len(held)} held-out positions: {before:.6f} for material"
        f" alone (100/300/300/500/900), {present:.6f} for the weights before, {after:.6f} for these."
    )
    head = "The evaluation's weights in centipawns. Generated by bench/tune.py; do not edit."
    whole, whole_units = found.weights.astype(np.int64), found.units.astype(np.int64)
    args.out.write_text(render(whole, whole_units, f"{head}\n\n{textwrap.fill(body, 110)}\n"))


def sources(data: Data) -> list[Array]:
    """A mask for each file."""
    return [data.source == number for number in range(int(data.source.max()) + 1)]


if __name__ == "__main__":
    main()
