"""Which entries of its table a machine sends, and what it does with those of the others.

Sending every entry is useless: most are of the last plies, and the receiver is quicker to search them again. So only
entries of some depth and more are sent, and that depth follows the traffic, as in Texel's cluster: when there is more
than a batch has room for, it rises by one; when less than half a batch is filled, it falls by one.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from psearch.core.constants import ENTRY_BYTES
from psearch.remote.one_position.machine_messages import Parcel

LEAST_DEPTH, MOST_DEPTH = 1, 60
_FIRST_DEPTH = 3


class Table(Protocol):
    """A transposition table (`psearch.arena.table_exchange`)."""

    def log(self, least_depth: int | None) -> None:
        """Log what is stored from now on for others if it is this deep; None: nothing is."""

    def collect(self, room: int) -> tuple[np.ndarray, int]:
        """Return entries that have not been sent, at most `room`, and how many there are."""

    def insert(self, batch: np.ndarray) -> int:
        """Take entries; how many were news."""

    def forget(self) -> None:
        """Forget what was sent: everything may be sent again."""


class Threshold:
    """The least depth of an entry that is sent."""

    def __init__(self) -> None:
        self.depth = _FIRST_DEPTH

    def update(self, found: int, room: int) -> None:
        """Note that so many entries were there for a batch with so much room."""
        if found > room:
            self.depth = min(self.depth + 1, MOST_DEPTH)
        elif 2 * found < room:
            self.depth = max(self.depth - 1, LEAST_DEPTH)


def room_of(bytes_per_second: float, period_s: float, machines: int) -> int:
    """Return entries in a parcel of which each of so many machines sends one to each other in a period, at least 1."""
    return max(1, int(bytes_per_second * period_s / max(machines - 1, 1) / ENTRY_BYTES))


class Sharing:
    """One machine's side of the exchange, in one search after another. room: entries in a batch, at least 1."""

    def __init__(self, machine: int, room: int, table: Table | None) -> None:
        self.machine = machine
        self.room = room
        self._table = table
        self.threshold = Threshold()
        self.sent = self.received = self.taken = 0
        """entries"""

    def begin(self) -> None:
        """Begin a search."""
        if self._table is not None:
            self._table.log(self.threshold.depth)

    def end(self) -> None:
        """End a search: what is stored concerns nobody else."""
        if self._table is not None:
            self._table.log(None)

    def forget(self) -> None:
        """Forget everything, as for another game: the tables are empty."""
        self.threshold = Threshold()
        if self._table is not None:
            self._table.forget()

    def pack(self) -> Parcel | None:
        """Return what is to go to each of the others now; None: nothing."""
        if self._table is None:
            return None
        entries, found = self._table.collect(self.room)
        self.threshold.update(found, self.room)
        self._table.log(self.threshold.depth)
        self.sent += len(entries)
        return Parcel(self.machine, entries) if len(entries) else None

    def take(self, parcel: Parcel) -> None:
        """Take what another machine has packed."""
        if self._table is not None:
            self.received += len(parcel.entries)
            self.taken += self._table.insert(parcel.entries)
