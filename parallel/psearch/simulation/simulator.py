"""Searches in virtual time, deterministic, with any number of workers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import chess
import numpy as np

from psearch.arena.arena import Arena
from psearch.arena.setup import Subject, board_text, perturb_history, write_search
from psearch.arena.validate import describe, violations
from psearch.options import SearchOptions
from psearch.results import Limits, PsearchError
from psearch.scheduler.scheduler_entries import load_kernels
from psearch.simulation.costs import Costs
from psearch.simulation.simulation_entries import VIRTUAL
from psearch.trace.recorder import Recorder
from psearch_core.constants import BOUND_EXACT, STACK_FREE
from psearch_core.records import INFO_RING, MAX_PLY, WORKER_BITS, lock_dtype, simulation_dtype
from psearch_core.toolchain.groups import Group

_EVENTS_PER_CALL = 1 << 20
_EVENTS_PER_LOOK = 1 << 12
"""Events between two reads of the ring: a few milliseconds, too few to overwrite unread reports."""
TICKS_PER_SECOND = 10**12


@dataclass(frozen=True)
class VirtualSample:
    """Results of one search in virtual time, a line of the raw log."""

    position: str
    fen: str
    depth: int
    policy: str
    threads: int
    seed: int
    seconds: float
    """Virtual time of the search."""
    nodes: int
    score: int
    bestmove: int
    splits: int
    joins: int
    aborted_nodes: int
    idle_share: float
    pruning: str = ""
    """Pruning mode as text; empty in logs that are older than the modes."""
    repeat: int = 0
    history: int = 0
    """Seed of the perturbed history; 0 if the history was empty."""
    wait_share: float = 0.0
    """Share of the workers' time spent waiting for locks of nodes; missing in logs before November 2026."""


class Simulator:
    """A driver in virtual time with its arena. It can be reused, also after an interrupted search; close it at the end.

    workers: number of virtual workers; trace_events: size of each worker's log; unless 0, `recorder` writes the last
    search to a file, even an interrupted one; driver: the kernels, `VIRTUAL` or a copy with some replaced; a search
    with a user's policy replaces them by that policy's.
    """

    def __init__(
        self, workers: int, hash_mb: int, costs: Costs, trace_events: int = 0, driver: Group = VIRTUAL
    ) -> None:
        self.arena = Arena(workers, hash_mb, trace_events=trace_events)
        self.recorder = Recorder(self.arena, virtual=True) if trace_events else None
        self.costs = costs
        self.simulation = np.zeros(1, simulation_dtype)
        self.locks = np.zeros(len(self.arena.frames), lock_dtype)
        self._driver = driver
        self._set_up: Callable[[], None]
        """Sets up the last `search`."""

    def search(
        self,
        name: str,
        board: chess.Board | Subject,
        depth: int,
        options: SearchOptions,
        seed: int = 0,
        validate: bool = False,
        watch: Callable[[], None] | None = None,
        history: int = 0,
    ) -> VirtualSample:
        """Search to a depth from an empty table. `watch` is called every million events.

        history: seed of a perturbed history, 0 for an empty one; validate: check all invariants of the arena after
        every event (slow). Raises PsearchError when one is violated.
        """
        self._set_up = partial(self._begin, board, Limits(depth=depth), options, seed, history=history)
        self.begin_again()
        try:
            self._run(validate, watch)
        finally:
            if self.recorder is not None:
                self.recorder.end(int(self.simulation[0]["now"]))
        return replace(self._sample(name, board, depth, options, seed), history=history)

    def begin_again(self) -> None:
        """Begin the last `search` once more, to be driven by `advance_to`."""
        if self.recorder is not None:
            self.recorder.begin()
        self._set_up()

    def play(self, board: chess.Board, seconds: float, options: SearchOptions) -> VirtualSample:
        """Search for some seconds of virtual time, with table and history as they are since the last `forget`.

        The sample's depth is that of the unfinished iteration. A single legal move is played at once.
        """
        self.begin(board, options, seconds, depth=1 if board.legal_moves.count() == 1 else None)
        self._run(validate=False, watch=None)
        return self._sample("", board, int(self.arena.header[0]["depth"]), options, seed=0)

    def begin(
        self, board: chess.Board | Subject, options: SearchOptions, seconds: float, depth: int | None = None
    ) -> None:
        """Begin a search as in `play`, with the clock at zero, to be driven by `advance_to`."""
        deadline = max(1, round(seconds * TICKS_PER_SECOND))
        self._begin(board, Limits(depth=depth), options, seed=0, deadline=deadline, keep=True)

    def advance_to(self, clock: int) -> bool:
        """Run all turns that begin before `clock`, in ticks; return whether the search is done."""
        record = self.simulation[0]
        while not self._advance(_EVENTS_PER_CALL, max(clock, 1)):
            if int(record["base"]) + (int(record["heap"][0]) >> WORKER_BITS) >= clock:  # start of the next turn
                return False
        return True

    def forget(self) -> None:
        """Clear the table and all that was learnt, as for a new game."""
        self.arena.forget()
        self.arena.header["age"] = 0

    def _sample(
        self, name: str, board: chess.Board | Subject, depth: int, options: SearchOptions, seed: int
    ) -> VirtualSample:
        """Return the results of the search that has just ended."""
        arena, record = self.arena, self.simulation[0]
        workers, now = arena.worker, int(record["now"])
        seconds = now / TICKS_PER_SECOND
        asleep = record["sleeping"][: int(record["sleepers"])]
        idle = int(record["idle_time"][: arena.workers].sum() + (now - record["idle_since"][asleep]).clip(0).sum())
        return VirtualSample(
            position=name,
            fen=board_text(board),
            depth=depth,
            policy=options.policy,
            threads=arena.workers,
            seed=seed,
            seconds=seconds,
            nodes=int(workers["nodes"].sum()),
            score=int(arena.header[0]["score"]),
            bestmove=int(arena.header[0]["best_move"]),
            splits=int(workers["counters"]["splits"].sum()),
            joins=int(workers["counters"]["joins"].sum()),
            aborted_nodes=int(workers["counters"]["aborted_nodes"].sum()),
            idle_share=idle / TICKS_PER_SECOND / (seconds * arena.workers),
            wait_share=int(record["waited"]) / TICKS_PER_SECOND / (seconds * arena.workers),
            pruning=options.pruning_words if isinstance(board, chess.Board) else "",
        )

    def iterations(
        self,
        board: chess.Board | Subject,
        options: SearchOptions,
        is_enough: Callable[[dict[int, int], int], bool],
        history: int = 0,
    ) -> dict[int, int]:
        """Search, and return by depth the number of nodes after which each iteration was finished.

        The search ends at the greatest depth, or when `is_enough`, called every few thousand events with these numbers
        and the nodes so far, returns True. history: as in `search`.
        """
        self._begin(board, Limits(), options, seed=0, history=history)
        found: dict[int, int] = {}
        while True:
            done = self._advance(_EVENTS_PER_LOOK)
            reports = self.arena.header[0]["infos"][: min(int(self.arena.header[0]["info_count"]), INFO_RING)]
            exact = reports["bound"] == BOUND_EXACT
            depths, nodes = reports["depth"][exact].tolist(), reports["nodes"][exact].tolist()
            found.update({depth: n for depth, n in zip(depths, nodes, strict=True) if depth not in found})
            if done or is_enough(found, int(self.arena.worker["nodes"].sum())):
                return found

    def _begin(
        self,
        board: chess.Board | Subject,
        limits: Limits,
        options: SearchOptions,
        seed: int,
        deadline: int = 0,
        keep: bool = False,
        history: int = 0,
    ) -> None:
        """Set up a search, in the state before a first one. keep: keep table and history."""
        arena, nodes = self.arena, self.arena.frames["node"]
        for number in np.flatnonzero(arena.stack["state"] != STACK_FREE).tolist():  # left by an interrupted search
            for name in ("open", "lock"):
                nodes[name][number * MAX_PLY : (number + 1) * MAX_PLY] = 0
        arena.stack["open_mask"] = 0
        arena.stack["state"] = STACK_FREE
        if not keep:
            self.forget()
        if history:
            perturb_history(arena, history)
        if options.join_cost == 0:
            options = replace(options, join_cost=self.costs.join_in_nodes)
        arena.use_kernels(options.kernels, self._driver)
        load_kernels(arena.driver)
        write_search(arena, board, limits, options)
        record = self.simulation[0]
        self.costs.write(record, arena.stacks)
        record["random"] = seed
        record["deadline"] = deadline
        self.locks[:] = 0
        arena.driver.function("begin_virtual")(arena.context, self.simulation.ctypes.data)
        self._run_virtual = arena.driver.function("run_virtual")

    def _run(self, validate: bool, watch: Callable[[], None] | None) -> None:
        done = False
        while not done:
            done = self._advance(1 if validate else _EVENTS_PER_CALL)
            if found := violations(self.arena) if validate else []:
                raise PsearchError("invariant violated: " + "; ".join(found) + "\n" + describe(self.arena))
            if watch:
                watch()

    def _advance(self, events: int, pause: int = 0) -> bool:
        """Run up to `events` turns, all of them before `pause` unless 0; return whether the search is done."""
        arguments = (self.arena.context, self.simulation.ctypes.data, self.locks.ctypes.data)
        state = self._run_virtual(*arguments, events, pause)
        if state < 0:
            raise PsearchError("every virtual worker is idle and the search is not done\n" + describe(self.arena))
        return bool(state == 1)

    def close(self) -> None:
        self.arena.close()
