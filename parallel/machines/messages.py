"""What machines that search one position tell each other; plain data, and how many bytes it is on its way."""

from __future__ import annotations

from dataclasses import dataclass

import chess
import numpy as np

from psearch.core.constants import ENTRY_BYTES

_HEAD_BYTES = 256
"""Of any message: addresses, numbers, what the carrier adds."""
_MOVE_BYTES = 2


@dataclass(frozen=True)
class Job:
    """What a machine is to search."""

    number: int
    """of its own for each job of a search; reports have it. A job with the number of the one that a machine is at only
    has another floor"""
    path: tuple[chess.Move, ...] = ()
    """from the root to the position"""
    only: tuple[chess.Move, ...] | None = None
    """moves of that position to choose from; None: all of them"""
    floor: int | None = None
    """a score, for the side to move there: that all of `only` are worth no more is as good as a value"""
    depth: int = 0
    """of iterations that may be left out"""

    @property
    def bytes(self) -> int:
        return _HEAD_BYTES + _MOVE_BYTES * (len(self.path) + len(self.only or ()))


@dataclass(frozen=True)
class Report:
    """What a machine has found so far of its job."""

    machine: int
    job: int
    depth: int
    score: int
    """centipawns for the side to move at the job's position; mates as the search counts them"""
    bound: int
    """BOUND_UPPER, BOUND_LOWER or BOUND_EXACT"""
    pv: tuple[chess.Move, ...]
    """from the job's position; searched by this machine"""
    nodes: int = 0
    seldepth: int = 0
    line: int = 1
    """number of this line among the best, from 1, where several are wanted"""
    is_last: bool = False
    """the machine has stopped"""

    @property
    def bytes(self) -> int:
        return _HEAD_BYTES + _MOVE_BYTES * len(self.pv)


@dataclass(frozen=True, eq=False)
class Parcel:
    """Entries of one machine's table for the others."""

    machine: int
    entries: np.ndarray
    """[number, 2] of uint64: key and data"""

    @property
    def bytes(self) -> int:
        return _HEAD_BYTES + ENTRY_BYTES * len(self.entries)
