"""Searches in virtual time: one position, any number of workers, deterministic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import chess
import numpy as np

from psearch.arena.arena import Arena
from psearch.arena.setup import write_search
from psearch.arena.validate import describe, violations
from psearch.core.constants import STACK_FREE
from psearch.core.pruning.modes import pruning_text
from psearch.core.records import MAX_PLY, simulation_dtype
from psearch.options import SearchOptions
from psearch.results import Limits, PsearchError
from psearch.simulation.costs import Costs
from psearch.simulation.entries import begin_virtual, run_virtual
from psearch.trace.recorder import Recorder

_EVENTS_PER_CALL = 1 << 20
_TOO_QUICK = 0.05
TICKS_PER_SECOND = 10**12


@dataclass(frozen=True)
class VirtualSample:
    """One search in virtual time; a line of the raw log."""

    position: str
    fen: str
    depth: int
    policy: str
    threads: int
    seed: int
    seconds: float
    """virtual"""
    nodes: int
    score: int
    bestmove: int
    splits: int
    joins: int
    aborted_nodes: int
    idle_share: float
    pruning: str = ""
    """as `pruning_text` gives it; empty in logs that are older than the modes"""


class Simulator:
    """An arena for `workers` virtual workers, and the driver's state. Reusable, also after an interrupted search; close
    when done.

    trace_events: room for so many in each worker's log; with room `recorder` writes the last search to a file, also
    one that was interrupted.
    """

    def __init__(self, workers: int, hash_mb: int, costs: Costs, trace_events: int = 0) -> None:
        self.arena = Arena(workers, hash_mb, trace_events=trace_events)
        self.recorder = Recorder(self.arena, virtual=True) if trace_events else None
        self.costs = costs
        self.simulation = np.zeros(1, simulation_dtype)
        self.lock_free = np.zeros(len(self.arena.frames), np.int64)

    def search(
        self,
        name: str,
        board: chess.Board,
        depth: int,
        options: SearchOptions,
        seed: int = 0,
        validate: bool = False,
        watch: Callable[[], None] | None = None,
    ) -> VirtualSample:
        """Search to a depth from an empty table. `watch` is called every million events.

        With `validate` every invariant of the arena is checked after every event (slow). Raises PsearchError when
        one does not hold.
        """
        if self.recorder is not None:
            self.recorder.begin()
        self._begin(board, Limits(depth=depth), options, seed)
        try:
            self._run(validate, watch)
        finally:
            if self.recorder is not None:
                self.recorder.end(int(self.simulation[0]["now"]))
        return self._sample(name, board, depth, options, seed)

    def play(self, board: chess.Board, seconds: float, options: SearchOptions) -> VirtualSample:
        """Search for so much virtual time, with what is in the table and the history since `forget`.

        The sample's depth is that of the iteration which time cut short. With a single legal move it is played at once.
        """
        limits = Limits(depth=1 if board.legal_moves.count() == 1 else None)
        self._begin(board, limits, options, seed=0, deadline=max(1, round(seconds * TICKS_PER_SECOND)), keep=True)
        self._run(validate=False, watch=None)
        return self._sample("", board, int(self.arena.header[0]["depth"]), options, seed=0)

    def seconds_of(self, nodes: float) -> float:
        """The virtual time in which one worker searches about so many nodes: the mean of what a node of the main search
        and one of quiescence cost."""
        return nodes * (self.costs.node + self.costs.qnode) / 2e9

    def forget(self) -> None:
        """Empty the table and the history, as for another game."""
        self.arena.forget()
        self.arena.header["age"] = 0

    def _sample(self, name: str, board: chess.Board, depth: int, options: SearchOptions, seed: int) -> VirtualSample:
        """What the search that has just ended did."""
        arena = self.arena
        record = self.simulation[0]
        workers = arena.worker
        seconds = int(record["now"]) / TICKS_PER_SECOND
        asleep = record["sleeping"][: int(record["sleepers"])]
        idle = int(record["idle_time"][: arena.workers].sum())
        idle += int((int(record["now"]) - record["idle_since"][asleep]).clip(0).sum())
        return VirtualSample(
            position=name,
            fen=board.fen(),
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
            pruning=pruning_text(options.pruning),
        )

    def depth_within(self, board: chess.Board, nodes: int, options: SearchOptions) -> int:
        """The deepest iteration that finishes within so many nodes; 0 if all together need less than 5% of them."""
        self._begin(board, Limits(nodes=nodes), options, seed=0)
        self._run(validate=False, watch=None)
        header = self.arena.header[0]
        searched = int(self.arena.worker["nodes"].sum())
        if searched < nodes:
            return int(header["depth"]) if searched >= _TOO_QUICK * nodes else 0
        return int(header["depth"]) - 1

    def _begin(
        self,
        board: chess.Board,
        limits: Limits,
        options: SearchOptions,
        seed: int,
        deadline: int = 0,
        keep: bool = False,
    ) -> None:
        """Everything as it is before a first search, but for the table and the history if they are to be kept."""
        arena = self.arena
        self._take_back_stacks()
        if not keep:
            self.forget()
        if options.join_cost == 0:
            options = replace(options, join_cost=self.costs.join_in_nodes)
        write_search(arena, board, limits, options)
        record = self.simulation[0]
        self.costs.write(record["costs"], arena.stacks)
        record["random"] = seed
        record["deadline"] = deadline
        self.lock_free[:] = 0
        begin_virtual(arena.context, self.simulation.ctypes.data)

    def _take_back_stacks(self) -> None:
        """Free what an interrupted search was at. After a search that ended by itself there is nothing to do."""
        stack, nodes = self.arena.stack, self.arena.frames["node"]
        for number in np.flatnonzero(stack["state"] != STACK_FREE):
            frames = slice(number * MAX_PLY, (number + 1) * MAX_PLY)
            nodes["open"][frames] = 0
            nodes["lock"][frames] = 0
        stack["open_mask"] = 0
        stack["state"] = STACK_FREE

    def _run(self, validate: bool, watch: Callable[[], None] | None) -> None:
        events = 1 if validate else _EVENTS_PER_CALL
        arguments = (self.arena.context, self.simulation.ctypes.data, self.lock_free.ctypes.data, events)
        while True:
            state = run_virtual(*arguments)
            if state < 0:
                raise PsearchError("every virtual worker is idle and the search is not done\n" + describe(self.arena))
            found = violations(self.arena) if validate else []
            if found:
                raise PsearchError("invariant violated: " + "; ".join(found) + "\n" + describe(self.arena))
            if watch:
                watch()
            if state == 1:
                return

    def close(self) -> None:
        """Give the memory back."""
        self.arena.close()
