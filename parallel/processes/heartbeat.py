"""Tells workers that do not run any more from workers that have much to do, or wait for a core."""

from __future__ import annotations

import math
import time

import numpy as np

from psearch.processes.inline import InlinePool
from psearch.processes.pool import WorkerPool

_INTERVAL_S = 0.15
"""A look wakes the supervising process, and most of the time nothing else does."""
_HALTED_LOOKS = 2
"""For one that is halted: it may have been the whole program, which has just been continued."""
_SILENT_LOOKS = 100
"""Fifteen seconds for any other: 512 workers on one core have a turn in three, and a disk may be slow."""


class Heartbeat:
    """Looks from time to time at what each busy worker of a pool has done.

    Looks are counted, not seconds: when the machine sleeps nobody looks either. only_halts: what the workers do does
    not show, only that one is halted counts.
    """

    def __init__(self, pool: WorkerPool | InlinePool, only_halts: bool = False) -> None:
        self._pool = pool
        self._only_halts = only_halts
        self._next_look_s = time.monotonic() + _INTERVAL_S
        self._beats = self._count_beats()
        self._silent = np.zeros(len(self._beats), np.int64)
        """looks since each worker has last done anything"""

    def _count_beats(self) -> np.ndarray:
        counters: np.ndarray = self._pool.arena.worker["counters"]["search_cycles"].copy()
        return counters

    def pause_s(self) -> float:
        """Return seconds until the next look."""
        return self._next_look_s - time.monotonic() if isinstance(self._pool, WorkerPool) else math.inf

    def check(self) -> None:
        """Raises WorkerDied when a worker has done nothing for long, though it had the time. May be called at any
        rate."""
        now = time.monotonic()
        if now < self._next_look_s or not isinstance(self._pool, WorkerPool):
            return
        self._next_look_s = now + _INTERVAL_S
        beats = self._count_beats()
        self._silent = np.where(beats == self._beats, self._silent + 1, 0)
        self._beats = beats
        for index in self._pool.busy:
            is_silent = self._silent[index] >= _SILENT_LOOKS and not self._only_halts
            if is_silent or (self._silent[index] >= _HALTED_LOOKS and self._pool.workers[index].is_halted):
                raise self._pool.give_up_silent(index)


def find_halted(pool: WorkerPool | InlinePool) -> int | None:
    """Return a busy worker that is halted now."""
    return next((index for index in pool.busy if pool.workers[index].is_halted), None)
