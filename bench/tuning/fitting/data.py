"""The positions to fit and those held out, as features and outcomes.

The error reported is that of a tenth that was not fitted. Files may name positions of one game on several lines: those
may fall on both sides.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from psearch_core.chess.tables import make_tables

from .columns import Array
from .features import features
from .positions import quiet_positions

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
        """N."""
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
    return tuple(  # type: ignore[return-value]  # two of them
        Data(*(np.concatenate([getattr(part[k], name) for part in parts]) for name in Data.__dataclass_fields__))
        for k in range(2)
    )


def sources(data: Data) -> list[Array]:
    """A mask for each file."""
    return [data.source == number for number in range(int(data.source.max()) + 1)]
