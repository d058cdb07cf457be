"""What is read of a search that runs, without a lock and without a word to the workers.

Workers write while this reads: a number may be old, and two numbers may not belong together. So every number that leads
somewhere is checked first, whatever is said of an open node is taken for true only if the node had the same number
before and after it was read (`nodes`), and moves are played on a board (`lines`). Frames that no worker has come to are
not touched: their pages would be taken. The arrays last for one look: nothing here keeps memory that the engine has
given back.
"""

from __future__ import annotations

import numpy as np

from psearch.arena.arena import Arena
from psearch_core.constants import STATE_IDLE
from psearch_core.records import MAX_PLY

COUNTED = ("splits", "joins", "aborts", "aborted_nodes", "idle_cycles", "search_cycles")
"""Workers' counters that are in a snapshot, besides `nodes`."""


class Memory:
    """One look at an arena. Raises AttributeError when it is closed."""

    def __init__(self, arena: Arena) -> None:
        self.workers = arena.workers
        self.stacks = arena.stacks
        self._worker = arena.worker
        self._header = arena.header
        self._stack = arena.stack
        self.node = arena.frames["node"]
        self.visit = arena.frames["visit"]
        self.split = arena.frames["trace"]["split"]
        self._moves = arena.stack["path"]["move"]

    def counters(self) -> dict[str, np.ndarray]:
        """Return counters by name, of each worker; `nodes` too."""
        counters = self._worker["counters"]
        found = {name: counters[name].astype(np.int64) for name in COUNTED}
        found["nodes"] = self._worker["nodes"].astype(np.int64)
        return found

    def is_busy(self) -> np.ndarray:
        """Tell whether each worker has a stack."""
        busy: np.ndarray = (self._worker["stack"] >= 0) & (self._worker["state"] != STATE_IDLE)
        return busy

    def places(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return numbers of the workers that run a stack, and the numbers of their stacks and plies there."""
        stacks, plies = self._worker["stack"].copy(), self._worker["ply"].copy()
        there = np.flatnonzero((stacks >= 0) & (stacks < self.stacks) & (plies >= 0) & (plies < MAX_PLY))
        return there, stacks[there], plies[there]

    def innermost(self, stacks: np.ndarray, plies: np.ndarray) -> np.ndarray:
        """Return the number of the open node that each of these workers is inside, -1 where there is none.

        That is the one of its frame, or the home of the visit that led there, or the open ancestor of that one.
        """
        own = stacks * MAX_PLY + plies
        bases = self._stack["base"][stacks]
        # a helper's visit lies at the base of its stack; the visit that led to a frame lies at the ply before it
        led = np.where(plies > np.clip(bases, 0, MAX_PLY - 1), own - 1, own)
        homes = self.valid(self.visit["home"][led])
        above = np.where(self.is_open(homes), homes, self.open_parents(homes))
        found: np.ndarray = np.where(self.is_open(own), own, above)
        return found

    def is_open(self, homes: np.ndarray) -> np.ndarray:
        """Tell whether each is the number of a frame whose node is open."""
        found: np.ndarray = (homes >= 0) & (self.node["open"][np.maximum(homes, 0)] != 0)
        return found

    def open_parents(self, homes: np.ndarray) -> np.ndarray:
        """Return the open nodes above those of these frames; -1 for none, and for what is no number of a frame."""
        return np.where(homes >= 0, self.valid(self.node["open_parent"][np.maximum(homes, 0)]), -1)

    def valid(self, homes: np.ndarray) -> np.ndarray:
        """Return these numbers of frames, with -1 for what is none."""
        return np.where((homes >= 0) & (homes < self.stacks * MAX_PLY), homes, -1)

    def line(self, stack: int, ply: int) -> list[int]:
        """Return codes of the moves that lead to this ply of a stack."""
        codes: list[int] = self._moves[stack, 1 : ply + 1].tolist()
        return codes

    def root(self) -> np.ndarray:
        """Return a copy of the root's position, one `position_dtype` record in an array."""
        return self._header["root"].copy()

    def p_no_cutoff(self) -> np.ndarray:
        """Return P(no cutoff) by expected type, table bound, depth and progress, in 1/65536."""
        table: np.ndarray = self._header["prediction"]["p_no_cut"][0]
        return table

    @property
    def depth(self) -> int:
        """Return the depth of the last finished iteration."""
        return int(self._header["depth"][0])

    @property
    def is_done(self) -> bool:
        """Whether every root is through."""
        return bool(self._header["done"][0])
