"""What machines that search one position tell each other; plain data, and how many bytes it is on its way."""

from __future__ import annotations

from dataclasses import dataclass

import chess
import numpy as np

from psearch.core.constants import ENTRY_BYTES

HEAD_BYTES = 256
"""Of any message: addresses, numbers, what the carrier adds."""
_MOVE_BYTES = 2


@dataclass(frozen=True)
class MachineReport:
    """What a machine has found so far."""

    machine: int
    depth: int
    score: int
    """centipawns for the side to move at the root; mates as the search counts them"""
    bound: int
    """BOUND_UPPER, BOUND_LOWER or BOUND_EXACT"""
    pv: tuple[chess.Move, ...]
    """from the root; searched by this machine"""
    nodes: int = 0
    seldepth: int = 0
    line: int = 1
    """number of this line among the best, from 1, where several are wanted"""

    @property
    def bytes(self) -> int:
        return HEAD_BYTES + _MOVE_BYTES * len(self.pv)


@dataclass(frozen=True, eq=False)
class Parcel:
    """Entries of one machine's table for the others."""

    machine: int
    entries: np.ndarray
    """[number, 2] of uint64: key and data"""

    @property
    def bytes(self) -> int:
        return HEAD_BYTES + ENTRY_BYTES * len(self.entries)
