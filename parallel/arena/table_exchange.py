"""Entries of one arena's table for others, and those of others into it: `core/chess/search/exchange.py` for Python."""

from __future__ import annotations

import numpy as np

from psearch.arena.arena import Arena
from psearch.core.chess.chess_entries import collect_entries, insert_entries
from psearch.core.records import NEVER_LOGGED

_REMEMBERED = 1 << 17
_LOW_WORD = (1 << 32) - 1


class TableExchange:
    """The table of an arena as seen from the network. The arena must stay open; its workers may be searching.

    A batch is an array of entries, [number, 2] of uint64: key and data. remembered: entries, at least 1, of which it is
    known that the others have them. Nothing is logged by the workers, and so nothing sent, before `log`.
    """

    def __init__(self, arena: Arena, remembered: int = _REMEMBERED) -> None:
        if remembered < 1:
            raise ValueError("at least one entry is remembered")
        self._memory = np.zeros(remembered, np.uint64)
        self._depth = NEVER_LOGGED
        self.follow(arena)

    def follow(self, arena: Arena) -> None:
        """From now on the table is that of this arena: the same one, when workers were replaced."""
        self.arena = arena
        self._pass_over()
        self.log(self._depth)

    def log(self, least_depth: int | None) -> None:
        """What workers store from now on is noted for others if it is this deep; None: nothing is."""
        self._depth = NEVER_LOGGED if least_depth is None else least_depth
        self.arena.header["logged_depth"] = self._depth

    def forget(self) -> None:
        """Everything may be sent again, as when the table was emptied; what was stored before is not."""
        self._memory[:] = 0
        self._pass_over()

    def _pass_over(self) -> None:
        """What is in the logs now."""
        self._positions = self.arena.store_logs["count"].copy()
        """how much of each worker's log has been seen"""
        self._turn = 0

    def collect(self, room: int) -> tuple[np.ndarray, int]:
        """At most `room` entries that were stored in the present search since the last call and have not been sent, and
        how many there are. Those that found no room come next time, or are lost where workers have stored much more."""
        batch = np.empty((room, 2), np.uint64)
        memory = self._memory
        taken = found = 0
        for worker in self._with_news():
            both = collect_entries(
                self.arena.context,
                worker,
                self._depth,
                self._positions.ctypes.data,
                memory.ctypes.data,
                len(memory),
                batch[taken:].ctypes.data,
                room - taken,
            )
            taken += both >> 32
            found += both & _LOW_WORD
        return batch[:taken].copy(), found

    def _with_news(self) -> list[int]:
        """Workers that have logged something; another one comes first each time, for there may not be room for all."""
        workers = np.flatnonzero(self.arena.store_logs["count"] != self._positions)
        self._turn += 1
        return np.roll(workers, self._turn).tolist()

    def insert(self, batch: np.ndarray) -> int:
        """Take entries that say more than what is there; returns how many. Raises ValueError for no batch."""
        if batch.ndim != 2 or batch.shape[1] != 2 or batch.dtype != np.uint64:
            raise ValueError("a batch is an array of keys and data words")
        batch = np.ascontiguousarray(batch)
        memory = self._memory
        return insert_entries(self.arena.context, memory.ctypes.data, len(memory), batch.ctypes.data, len(batch))
