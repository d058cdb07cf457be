"""The positions to fit and those held out, as features and outcomes.

The error reported is that of a tenth that was not fitted. Files may name positions of one game on several lines: those
may fall on both sides.

The terms are linear in their weights. `features` sets the weights to powers of 1,024 and calls the kernel `terms_of`:
the digits of what it returns are the counts of three terms at a time. So there is no second version of the evaluation
that could differ from it, except for the sum, the king's danger and the scaling (`model`), which a test compares with
the kernel to the centipawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numba
import numpy as np

from psearch_core.chess.evaluation.endgames import SCALE_FULL, SCALING_PHASE, scale
from psearch_core.chess.evaluation.evaluate import PHASE_MAX, terms_of
from psearch_core.chess.evaluation.pawns import fill_pawn_entry, pawn_slot
from psearch_core.chess.evaluation.threats import danger_units
from psearch_core.chess.tables import make_tables
from psearch_core.records import evaluation_dtype
from psearch_core.terms import DANGER, DANGER_STEPS, TERM_COUNT, UNIT_COUNT
from psearch_core.views import evaluation_at, position_at, tables_at

from .positions import POSITION_SIZE, quiet_positions
from .weights import N_PSQT, Array

MOST_FEATURES = 160  # non-zero ones of a position
_DIGITS = 3


@numba.njit
def _fresh_pawn_slot(tb: Any, ev: Any, pos: Any) -> int:
    """The position's entry in the pawn hash, filled anew: weights change between calls."""
    slot = pawn_slot(tb, ev, pos)
    fill_pawn_entry(tb, ev.pawns[slot], pos)
    return slot


@numba.njit
def _trace_terms(tables: int, evaluation: int, positions: int, count: int, pairs: Array) -> None:
    """`terms_of` every position."""
    tb = tables_at(tables)
    ev = evaluation_at(evaluation)
    for i in range(count):
        pos = position_at(positions + i * POSITION_SIZE)
        slot = _fresh_pawn_slot(tb, ev, pos)
        pairs[i] = terms_of(tb, ev, pos, slot)


@numba.njit
def _trace_units(tables: int, evaluation: int, positions: int, count: int, units: Array) -> None:
    """The danger that each side is to the other's king."""
    tb = tables_at(tables)
    ev = evaluation_at(evaluation)
    for i in range(count):
        pos = position_at(positions + i * POSITION_SIZE)
        slot = _fresh_pawn_slot(tb, ev, pos)
        terms_of(tb, ev, pos, slot)
        for side in range(2):
            units[i, side] = danger_units(tb, ev, ev.pawns[slot], pos, side)


@numba.njit
def _trace_rest(tables: int, evaluation: int, positions: int, count: int, phase: Array, scales: Array) -> None:
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
def _list_squares(positions: Array, index: Array, value: Array, used: Array) -> None:
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
def _list_terms(pairs: Array, columns: Array, index: Array, value: Array, used: Array) -> None:
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
    _trace_rest(*addresses, made["phase"], made["scales"])
    _list_squares(positions, made["index"], made["value"], made["used"])
    pairs = np.zeros(n, np.int64)
    columns = [column for column in range(TERM_COUNT) if not DANGER <= column < DANGER + DANGER_STEPS]
    own["units"] = 0
    for first in range(0, len(columns), _DIGITS):
        some = np.array(columns[first : first + _DIGITS])
        own["terms"] = 0
        own["terms"][0, some] = 1024 ** np.arange(len(some))
        _trace_terms(*addresses, pairs)
        _list_terms(pairs, some + N_PSQT, made["index"], made["value"], made["used"])
    counts = np.zeros((n, 2), np.int64)
    for first in range(0, UNIT_COUNT, _DIGITS):
        own["units"] = 0
        width = min(_DIGITS, UNIT_COUNT - first)
        own["units"][0, first : first + width] = 1024 ** np.arange(width)
        _trace_units(*addresses, counts)
        for digit in range(width):
            made["units"][:, :, first + digit] = (counts >> (10 * digit)) & 1023
    if made["used"].max() > MOST_FEATURES:
        raise AssertionError("MOST_FEATURES is too small")
    return made


HELD_OUT = 10  # one position in so many


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
        return len(self.phase)

    def __getitem__(self, which: Array) -> Data:
        """The positions that an index array or mask names."""
        return Data(*(getattr(self, name)[which] for name in self.__dataclass_fields__))


def _held_out(positions: Array, seed: int) -> Array:
    """A mask of one position in HELD_OUT; copies of a board share their draw."""
    _, board_id = np.unique(np.ascontiguousarray(positions["board"]).view("V64").ravel(), return_inverse=True)
    return np.random.default_rng(seed).integers(HELD_OUT, size=board_id.max() + 1)[board_id] == 0


def load(paths: list[Path], seed: int) -> tuple[Data, Data]:
    """Training set and held-out set, of quiet positions that are no dead draw by rule."""
    tables = make_tables()
    parts = []
    for number, path in enumerate(paths):
        positions, outcome = quiet_positions(path, tables)
        made = features(positions, tables)
        source = np.full(len(positions), number, np.int8)
        data = Data(**made, score=outcome[:, 0], result=outcome[:, 1], source=source)
        held = _held_out(positions, seed)
        alive = data.scales.max(axis=1) > 0
        parts.append((data[alive & ~held], data[alive & held]))
        print(f"{path.name}: {len(outcome)} positions, {int(alive.sum())} not drawn by rule")
    train, held = (
        Data(*(np.concatenate([getattr(part[k], name) for part in parts]) for name in Data.__dataclass_fields__))
        for k in range(2)
    )
    return train, held


def sources(data: Data) -> list[Array]:
    """A mask for each file."""
    return [data.source == number for number in range(int(data.source.max()) + 1)]
