"""What it costs two workers to share a search, measured in real searches: for `calibrate.py`.

The searches run in threads of this process, which share an arena just as worker processes do. Three figures:

- `cold`: after a join the nodes of a worker take longer, for its lines lie in the other core's cache. That fades like
  one over the square root of the nodes searched since. Some of it is not sharing, but which nodes come after a join:
  so the same is measured with both workers in turns on one core, and taken off.
- `crowd`: how much longer a node takes, long after a join, while two share a search, than while one is alone.
- `hold_*`, `handover`: how long a node's lock is held, by what for, and how much longer if another worker held it last.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import chess
import numpy as np
from cost_kernels.cost_entries import search_in_turns_timing_nodes, search_timing_locks, search_timing_nodes
from cost_kernels.timings import (
    HELD_FOR_LEARN,
    HELD_FOR_MOVE,
    HELD_FOR_NEW_MOVES,
    HELD_FOR_VALUE,
    HELD_TO_JOIN,
    LOCK_KINDS,
    LONG_SINCE,
    lock_times_dtype,
    node_times_dtype,
)

from psearch.arena.arena import Arena
from psearch.arena.setup import write_search
from psearch.lab.studies import StudyProgress
from psearch.options import SearchOptions
from psearch.results import Limits

_HASH_MB = 64
_LONGEST_NS = 15_000
"""A node, or a lock, that takes longer was disturbed: the system took the core away."""
MEANINGS = {
    "hold_value": "a value comes in: its node's lock is held so long",
    "hold_move": "a move is taken: the same",
    "hold_new_moves": "and moves are generated or sorted: the same",
    "hold_learn": "a cutoff: the same",
    "hold_join": "a helper joins: the same",
    "handover": "a value, or a cutoff, where another worker held the lock last: more",
    "cold": "first node after a join: more; the n-th over the square root of n",
}
"""Costs of sharing that are nanoseconds, in words."""


@dataclass(frozen=True)
class SharingCosts:
    """What was measured, by the names of `Costs`, and of how many joins."""

    costs: dict[str, float]
    joins: int
    ratio: float
    """time of a node in a search that two share, over that of one alone: the median over the positions"""


class _NodeTimes:
    """Of several searches: nodes and their cycles, by nodes since the last join, and main search or quiescence."""

    def __init__(self) -> None:
        self.count = np.zeros((LONG_SINCE + 1, 2))
        self.cycles = np.zeros((LONG_SINCE + 1, 2))

    def add(self, found: np.ndarray) -> None:
        """Add what the workers of one search have found."""
        self.count += found["count"].sum(axis=0)
        self.cycles += found["cycles"].sum(axis=0)

    def excess(self) -> tuple[float, float]:
        """Return cycles that the nodes after joins took more than others of their kind, and what they would be if the
        first took one more and the n-th one over the square root of n."""
        usual = self.cycles[-1] / np.maximum(self.count[-1], 1)
        shape = 1 / np.sqrt(np.arange(1, LONG_SINCE + 1))
        after = self.count[:-1]
        return float((self.cycles[:-1] - after * usual).sum()), float((after.sum(axis=1) * shape).sum())


def measure_sharing(
    boards: Sequence[chess.Board], depth: int, cycles_per_ns: float, report: StudyProgress
) -> SharingCosts:
    """Search every position alone, shared by two, in turns on one core, and with timed locks."""
    longest = int(_LONGEST_NS * cycles_per_ns)
    alone, two = Arena(1, _HASH_MB), Arena(2, _HASH_MB)
    shared, in_turns = _NodeTimes(), _NodeTimes()
    ratios = []
    locks = np.zeros(2, lock_times_dtype)
    locks["longest"] = longest
    joins = 0
    try:
        for number, board in enumerate(boards, start=1):
            report(f"calibrate: sharing, position {number}/{len(boards)}")
            single = _times_of_nodes(alone, board, depth, longest)
            both = _times_of_nodes(two, board, depth, longest)
            shared.add(both)
            joins += int(two.worker["counters"]["joins"].sum())
            ratios.append(_ratio(both, single))
            _begin(two, board, depth)
            found = _fresh(2)
            search_in_turns_timing_nodes(two.context, found.ctypes.data, longest)
            in_turns.add(found)
            _time_locks(two, board, depth, locks)
    finally:
        alone.close()
        two.close()
    ratio = float(np.median(ratios))
    more, unit = shared.excess()
    more_in_turns, unit_in_turns = in_turns.excess()
    cold = (more / max(unit, 1) - more_in_turns / max(unit_in_turns, 1)) / cycles_per_ns
    costs = {"cold": max(cold, 0.0), "crowd": max(ratio - 1, 0.0), **_lock_costs(locks, cycles_per_ns)}
    return SharingCosts(costs, joins, ratio)


def _begin(arena: Arena, board: chess.Board, depth: int) -> None:
    arena.forget()
    arena.header["age"] = 0
    write_search(arena, board, Limits(depth=depth), SearchOptions())


def _side_by_side(run: Callable[[int], object], workers: int) -> None:
    """One thread for each worker."""
    threads = [threading.Thread(target=run, args=(worker,)) for worker in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _fresh(workers: int) -> np.ndarray:
    found = np.zeros(workers, node_times_dtype)
    found["since"] = LONG_SINCE
    return found


def _times_of_nodes(arena: Arena, board: chess.Board, depth: int, longest: int) -> np.ndarray:
    """A search by all workers of the arena, each in a thread."""
    _begin(arena, board, depth)
    found = _fresh(arena.workers)
    size = node_times_dtype.itemsize
    _side_by_side(
        lambda worker: search_timing_nodes(arena.context, worker, found.ctypes.data + worker * size, longest),
        arena.workers,
    )
    return found


def _ratio(both: np.ndarray, single: np.ndarray) -> float:
    """Time of a node long after a join, over that in the search alone; kinds as often as there."""
    count = single["count"][:, -1].sum(axis=0)
    alone = single["cycles"][:, -1].sum(axis=0)
    shared = both["cycles"][:, -1].sum(axis=0) / np.maximum(both["count"][:, -1].sum(axis=0), 1)
    return float((shared * count).sum() / max(alone.sum(), 1))


def _time_locks(arena: Arena, board: chess.Board, depth: int, times: np.ndarray) -> None:
    """A search by two workers, whose locks are added to `times`."""
    _begin(arena, board, depth)
    arena.frames["trace"]["entered"] = 0
    arena.use_memory(times)
    _side_by_side(partial(search_timing_locks, arena.context), arena.workers)


def _lock_costs(times: np.ndarray, cycles_per_ns: float) -> dict[str, float]:
    """Nanoseconds that a lock is held, and taken, beyond those of an empty one."""
    count = times["count"].sum(axis=0)
    held = times["held"].sum(axis=0) / cycles_per_ns
    taken = times["taken"].sum(axis=0) / cycles_per_ns

    def mean(values: np.ndarray, kinds: Sequence[int], other: int) -> float:
        return float(values[list(kinds), other].sum() / max(count[list(kinds), other].sum(), 1))

    def more(kinds: Sequence[int]) -> float:
        return max(mean(held + taken, kinds, 1) - mean(held + taken, kinds, 0), 0.0)

    assert count.shape == (LOCK_KINDS, 2)
    return {
        "hold_value": mean(held, [HELD_FOR_VALUE], 0),
        "hold_move": mean(held, [HELD_FOR_MOVE], 0),
        "hold_new_moves": mean(held, [HELD_FOR_NEW_MOVES], 0),
        "hold_learn": mean(held, [HELD_FOR_LEARN], 0),
        "hold_join": mean(held, [HELD_TO_JOIN], 1),
        "handover": more([HELD_FOR_VALUE, HELD_FOR_LEARN]),
    }
