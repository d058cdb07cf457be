"""Readers of what workers write while they search: the ring of reports in the header, and the transposition table."""

from __future__ import annotations

from typing import NamedTuple

import chess
import numpy as np

from psearch.arena.arena import Arena
from psearch.scheduler.scheduler_entries import reports_written
from psearch_core.chess.board.bridge import set_position
from psearch_core.constants import CLUSTER_BYTES
from psearch_core.records import INFO_RING, position_dtype

_RESERVE = 8
"""Number of oldest reports of a full ring to skip, since workers may overwrite them during the read."""
_WORDS = CLUSTER_BYTES // 8


class Record(NamedTuple):
    """A report in the ring, with the fields of `info_dtype`."""

    nodes: int
    depth: int
    seldepth: int
    score: int
    bound: int
    line: int
    share: int
    pv: list[int]


class InfoRing:
    """The reports of one search since its setup. The arena must stay open."""

    def __init__(self, arena: Arena) -> None:
        self._arena = arena
        self._read = 0
        """Number of reports read or lost so far."""

    def unread(self) -> list[Record]:
        """Return the new reports in order; those that were overwritten meanwhile are lost."""
        written = reports_written(self._arena.context)
        if written == self._read:
            return []
        first = max(self._read, written - INFO_RING + _RESERVE)
        infos = self._arena.header["infos"][0][np.arange(first, written) % INFO_RING]  # a copy
        self._read = written
        oldest_whole = reports_written(self._arena.context) - INFO_RING + 1
        columns = (infos[name].tolist() for name in Record._fields[:-1])
        lines = (line[:length].tolist() for line, length in zip(infos["pv"], infos["pv_length"], strict=True))
        return [Record(*fields) for fields in zip(*columns, lines, strict=True)][max(0, oldest_whole - first) :]


class StoredResult(NamedTuple):
    """The table's entry for a position."""

    move: int
    """Code of the best move, NO_MOVE if none is known."""
    score: int
    """Score for the side to move; mate distances count from this position."""
    depth: int
    bound: int
    """Bound of the score: BOUND_UPPER, BOUND_LOWER or BOUND_EXACT."""


class TableReader:
    """Reads the transposition table of an open arena, like the kernel `probe` in `psearch_core/chess/search/tt.py`."""

    def __init__(self, arena: Arena) -> None:
        self._arena = arena
        self._scratch = np.zeros(1, position_dtype)

    def key(self, board: chess.Board) -> int:
        """Return the key of a position, 0 to 2**64 - 1."""
        set_position(self._arena.tables, self._scratch, board)
        return int(self._scratch[0]["key"])

    def entry(self, key: int) -> StoredResult | None:
        """Return the entry for a key; None if there is none, or if two workers wrote it at the same time."""
        table = self._arena.tt
        begin = (key * (len(table) // _WORDS) >> 64) * _WORDS
        words = table[begin : begin + _WORDS].tolist()
        for check, data in zip(words[::2], words[1::2], strict=True):
            if check ^ data == key and data:
                score = data >> 16 & 0xFFFF
                return StoredResult(data & 0xFFFF, (score ^ 0x8000) - 0x8000, data >> 48 & 0xFF, data >> 56 & 3)
        return None
