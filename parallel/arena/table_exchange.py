"""Entries of one arena's table for others, and those of others into it: `core/search/exchange.py` for Python."""

from __future__ import annotations

import numpy as np

from psearch.arena.arena import Arena
from psearch.core.entries import collect_entries, insert_entries

_REMEMBERED = 1 << 17


class TableExchange:
    """The table of an arena as seen from the network. The arena must stay open; its workers may be searching.

    A batch is an array of entries, [number, 2] of uint64: key and data. remembered: entries, at least 1, of which it is
    known that the others have them.
    """

    def __init__(self, arena: Arena, remembered: int = _REMEMBERED) -> None:
        if remembered < 1:
            raise ValueError("at least one entry is remembered")
        self._arena = arena
        self._memory = np.zeros(remembered, np.uint64)

    def forget(self) -> None:
        """Everything may be sent again, as when the table was emptied or another machine has joined."""
        self._memory[:] = 0

    def collect(self, least_depth: int, room: int) -> tuple[np.ndarray, int]:
        """At most `room` entries of the present search that are this deep and have not been sent, and how many there
        are: those that found no room come next time.

        Reads the whole table.
        """
        batch = np.empty((room, 2), np.uint64)
        memory = self._memory
        found = collect_entries(
            self._arena.context, least_depth, memory.ctypes.data, len(memory), batch.ctypes.data, room
        )
        return batch[: min(found, room)].copy(), found

    def insert(self, batch: np.ndarray) -> int:
        """Take entries that say more than what is there; returns how many. Raises ValueError for no batch."""
        if batch.ndim != 2 or batch.shape[1] != 2 or batch.dtype != np.uint64:
            raise ValueError("a batch is an array of keys and data words")
        batch = np.ascontiguousarray(batch)
        memory = self._memory
        return insert_entries(self._arena.context, memory.ctypes.data, len(memory), batch.ctypes.data, len(batch))
