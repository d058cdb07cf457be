"""What a search has reported to the ring in the header, taken out in order; also while workers write to it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from psearch.arena.arena import Arena
from psearch.scheduler.scheduler_entries import reports_written
from psearch_core.records import INFO_RING

_RESERVE = 8
"""Reports that may be overwritten while older ones are read."""


class Record(NamedTuple):
    """A record of the ring: `info_dtype`."""

    nodes: int
    depth: int
    seldepth: int
    score: int
    bound: int
    line: int
    pv: list[int]


class InfoRing:
    """The reports of one search, from when it was set up. The arena must stay open."""

    def __init__(self, arena: Arena) -> None:
        self._arena = arena
        self._read = 0
        """reports taken so far, or lost"""

    def unread(self) -> list[Record]:
        """What is new; records that were written over meanwhile are lost."""
        written = reports_written(self._arena.context)
        if written == self._read:
            return []
        first = max(self._read, written - INFO_RING + _RESERVE)
        numbers = np.arange(first, written) % INFO_RING
        infos = self._arena.header["infos"][0][numbers]  # a copy
        self._read = written
        oldest_whole = reports_written(self._arena.context) - INFO_RING + 1
        columns = (infos[name].tolist() for name in Record._fields[:-1])
        lines = (line[:length].tolist() for line, length in zip(infos["pv"], infos["pv_length"], strict=True))
        return [Record(*fields) for fields in zip(*columns, lines, strict=True)][max(0, oldest_whole - first) :]
