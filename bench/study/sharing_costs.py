"""Costs of sharing a search between two workers, measured in real searches: for `calibrate.py`.

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
from cost_kernels import (
    HELD_FOR_LEARN,
    HELD_FOR_MOVE,
    HELD_FOR_NEW_MOVES,
    HELD_FOR_VALUE,
    HELD_TO_JOIN,
    LONG_SINCE,
    lock_times_dtype,
    node_times_dtype,
    search_in_turns_timing_nodes,
    search_timing_locks,
    search_timing_nodes,
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
    """The measurements, by the names of `Costs`, and the number of joins."""

    costs: dict[str, float]
    joins: int
    ratio: float
    """Time of a node in a search that two share, over that of one alone: the median over the positions."""


def _excess(found: dict[str, np.ndarray]) -> tuple[float, float]:
    """Return cycles that the nodes after joins took more than others of their kind, and what they would be if the first
    took one more and the n-th one over the square root of n. found: by name, [nodes since the join, kind]."""
    count, cycles = found["count"], found["cycles"]
    usual = cycles[-1] / np.maximum(count[-1], 1)
    after = count[:-1]
    shape = 1 / np.sqrt(np.arange(1, LONG_SINCE + 1))
    return float((cycles[:-1] - after * usual).sum()), float((after.sum(axis=1) * shape).sum())


def measure_sharing(
    boards: Sequence[chess.Board], depth: int, cycles_per_ns: float, report: StudyProgress
) -> SharingCosts:
    """Search every position alone, shared by two, in turns on one core, and with timed locks."""
    longest = int(_LONGEST_NS * cycles_per_ns)
    alone, two = Arena(1, _HASH_MB), Arena(2, _HASH_MB)
    shared, in_turns = ({name: np.zeros((LONG_SINCE + 1, 2)) for name in ("count", "cycles")} for _ in range(2))
    ratios = []
    locks = np.zeros(2, lock_times_dtype)
    locks["longest"] = longest
    joins = 0
    try:
        for number, board in enumerate(boards, start=1):
            report(f"calibrate: sharing, position {number}/{len(boards)}")
            single = _times_of_nodes(alone, board, depth, longest)
            both = _times_of_nodes(two, board, depth, longest)
            joins += int(two.worker["counters"]["joins"].sum())
            ratios.append(_ratio(both, single))
            _begin(two, board, depth)
            found = np.zeros(2, node_times_dtype)
            found["since"] = LONG_SINCE
            search_in_turns_timing_nodes(two.context, found.ctypes.data, longest)
            for total, times in ((shared, both), (in_turns, found)):
                for name, sums in total.items():
                    sums += times[name].sum(axis=0)
            _begin(two, board, depth)
            two.frames["trace"]["entered"] = 0
            two.use_memory(locks)
            _side_by_side(partial(search_timing_locks, two.context), 2)
    finally:
        alone.close()
        two.close()
    ratio = float(np.median(ratios))
    (more, unit), (more_in_turns, unit_in_turns) = _excess(shared), _excess(in_turns)
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


def _times_of_nodes(arena: Arena, board: chess.Board, depth: int, longest: int) -> np.ndarray:
    """A search by all workers of the arena, each in a thread."""
    _begin(arena, board, depth)
    found = np.zeros(arena.workers, node_times_dtype)
    found["since"] = LONG_SINCE
    size = node_times_dtype.itemsize
    _side_by_side(
        lambda worker: search_timing_nodes(arena.context, worker, found.ctypes.data + worker * size, longest),
        arena.workers,
    )
    return found


def _ratio(both: np.ndarray, single: np.ndarray) -> float:
    """Return the time of a node long after a join, over that in the search alone; kinds as often as there."""
    count = single["count"][:, -1].sum(axis=0)
    alone = single["cycles"][:, -1].sum(axis=0)
    shared = both["cycles"][:, -1].sum(axis=0) / np.maximum(both["count"][:, -1].sum(axis=0), 1)
    return float((shared * count).sum() / max(alone.sum(), 1))


def _lock_costs(times: np.ndarray, cycles_per_ns: float) -> dict[str, float]:
    """Nanoseconds that a lock is held, and taken, beyond those of an empty one."""
    count = times["count"].sum(axis=0)
    held = times["held"].sum(axis=0) / cycles_per_ns
    taken = times["taken"].sum(axis=0) / cycles_per_ns

    def mean(values: np.ndarray, kinds: Sequence[int], other: int) -> float:
        return float(values[list(kinds), other].sum() / max(count[list(kinds), other].sum(), 1))

    def more(kinds: Sequence[int]) -> float:
        return max(mean(held + taken, kinds, 1) - mean(held + taken, kinds, 0), 0.0)

    return {
        "hold_value": mean(held, [HELD_FOR_VALUE], 0),
        "hold_move": mean(held, [HELD_FOR_MOVE], 0),
        "hold_new_moves": mean(held, [HELD_FOR_NEW_MOVES], 0),
        "hold_learn": mean(held, [HELD_FOR_LEARN], 0),
        "hold_join": mean(held, [HELD_TO_JOIN], 1),
        "handover": more([HELD_FOR_VALUE, HELD_FOR_LEARN]),
    }
