"""Phases of a node with several workers: they are split, and given up in the middle, like any search.

Every step is watched: what a worker does while it unwinds, or at the end of a phase that only prepares, leaves the
transposition table alone.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import chess
import numpy as np
import pytest
from positions import KIWIPETE, MIDDLE_GAME

from psearch.arena.arena import Arena
from psearch.arena.setup import write_search
from psearch.arena.validate import describe, leftovers, violations
from psearch.core.constants import (
    CLOSED_CUTOFF,
    PHASE_IID,
    PHASE_MAIN,
    PHASE_PROBCUT,
    PHASE_SINGULAR,
    PHASE_VERIFY,
    STATE_FINISH,
    STATE_IDLE,
    STATE_UNWIND,
)
from psearch.core.pruning.modes import AEL, MODERN, Pruning
from psearch.core.records import MAX_PLY
from psearch.options import SearchOptions
from psearch.results import Limits
from psearch.scheduler.entries import request_stop
from psearch.simulation.costs import Costs
from psearch.simulation.entries import step_worker
from psearch.simulation.simulator import Simulator

_PREPARING = (PHASE_VERIFY, PHASE_IID, PHASE_SINGULAR)
"""phases at whose end nothing is stored"""
PHASES = {PHASE_VERIFY: "verify", PHASE_IID: "iid", PHASE_PROBCUT: "probcut", PHASE_SINGULAR: "singular"}
# every phase, and near the leaves, so that small trees are full of them
OFTEN = replace(
    MODERN,
    null_verify=1,
    null_verify_depth=3,
    iid=1,
    iid_depth=3,
    iir=0,
    probcut=1,
    probcut_depth=4,
    probcut_margin=50,
    singular=1,
    singular_depth=4,
    lmp=0,
    move_futility=0,
)
WORKERS = (2, 8, 64)


@pytest.fixture(scope="module")
def arenas() -> Iterator[dict[int, Arena]]:
    made = {workers: Arena(workers, 1) for workers in WORKERS}
    yield made
    for arena in made.values():
        arena.close()


class Watcher:
    """Runs a search one step at a time, workers drawn at random, and notes what happens inside phases."""

    def __init__(self, arena: Arena, seed: int) -> None:
        self.arena = arena
        self.dice = random.Random(seed)
        self.split: Counter[str] = Counter()
        """steps after which several workers were inside a node in this phase"""
        self.given_up: Counter[str] = Counter()
        """unwindings through a node in this phase that were due to something above it, or to a stop"""
        self.cut_short: Counter[str] = Counter()
        """unwindings that ended at a node whose phase another worker had cut off"""
        self.finished: Counter[str] = Counter()
        self.checked = 0
        # fields as arrays: a view of a whole record costs more than a step
        self._states, self._stacks, self._plies = (arena.worker[name] for name in ("state", "stack", "ply"))
        self._homes = arena.frames["visit"]["home"]
        nodes = arena.frames["node"]
        self._open, self._inside, self._phase, self._closed = (
            nodes[name] for name in ("open", "inside", "phase", "closed")
        )

    def step(self, index: int) -> None:
        """One transition of one worker, watched."""
        state = int(self._states[index])
        if state not in (STATE_UNWIND, STATE_FINISH):
            step_worker(self.arena.context, index, 1)
        else:
            self._checked_step(index, state)
        stack = int(self._stacks[index])
        if stack >= 0:
            home = self._homes[stack * MAX_PLY + int(self._plies[index])]
            if self._open[home] and self._inside[home] > 1 and self._phase[home] in PHASES:
                self.split[PHASES[int(self._phase[home])]] += 1

    def _checked_step(self, index: int, state: int) -> None:
        ply = int(self._plies[index])
        frame = int(self._stacks[index]) * MAX_PLY + ply
        phase, name, closed = PHASE_MAIN, None, 0
        if state == STATE_FINISH:
            phase = int(self._phase[frame])
            assert not self._open[frame], "whoever leaves last closes it"
        elif ply > 0:
            home = int(self._homes[frame - 1])
            name = PHASES.get(int(self._phase[home]))
            closed = int(self._closed[home]) if self._open[home] else 0
        before = self.arena.tt.copy() if state == STATE_UNWIND or phase in _PREPARING else None
        step_worker(self.arena.context, index, 1)
        if before is not None:
            assert np.array_equal(before, self.arena.tt), PHASES.get(phase, "unwinding")
            self.checked += 1
        if name is not None:
            short = closed == CLOSED_CUTOFF and int(self._states[index]) != STATE_UNWIND
            (self.cut_short if short else self.given_up)[name] += 1
        elif phase != PHASE_MAIN:
            self.finished[PHASES[phase]] += 1

    def is_in(self, phase: int) -> bool:
        """Whether a worker is below a move of a node in this phase."""
        for index in np.flatnonzero(self._stacks >= 0):
            first = int(self._stacks[index]) * MAX_PLY
            homes = self._homes[first + 1 : first + int(self._plies[index])]
            if (self._phase[homes] == phase).any():
                return True
        return False

    def run(self, validate_every: int, steps: int = 1 << 60) -> None:
        """Until the search is done or so many steps were taken."""
        count = self.arena.workers
        done = self.arena.header["done"]
        taken = 0
        while not done[0] and taken < steps:
            index = self.dice.randrange(count)
            if self._states[index] == STATE_IDLE and self.dice.random() < 0.9:
                continue  # most of many workers are idle most of the time
            self.step(index)
            taken += 1
            if taken % validate_every == 0:
                assert violations(self.arena) == [], describe(self.arena)


def watch(arena: Arena, fen: str, depth: int, pruning: Pruning, policy: str, seed: int, every: int = 200) -> Watcher:
    """One whole search, from an empty table."""
    arena.clear_table()
    arena.clear_learning()
    write_search(arena, chess.Board(fen), Limits(depth=depth), SearchOptions(policy=policy, pruning=pruning))
    watcher = Watcher(arena, seed)
    watcher.run(every)
    assert leftovers(arena) == []
    assert int(arena.worker["adopts"].sum()) == int(arena.worker["parks"].sum())
    return watcher


def test_phases_are_split_and_given_up(arenas: dict[int, Arena]) -> None:
    """Every kind of phase: by several workers at once, to its end, cut short by one, given up for what is above.

    Nothing is stored by the way (the watcher's business), and every invariant holds.
    """
    split: Counter[str] = Counter()
    given_up: Counter[str] = Counter()
    cut_short: Counter[str] = Counter()
    finished: Counter[str] = Counter()
    checked = 0
    searches = [(KIWIPETE, "knuth"), (MIDDLE_GAME, "knuth"), (KIWIPETE, "ybw"), (MIDDLE_GAME, "calibrated")]
    for workers in WORKERS:
        for seed, (fen, policy) in enumerate(searches[:1] if workers == 64 else searches):
            watcher = watch(arenas[workers], fen, 8, OFTEN, policy, seed, every=1000)
            split += watcher.split
            given_up += watcher.given_up
            cut_short += watcher.cut_short
            finished += watcher.finished
            checked += watcher.checked
    every = set(PHASES.values())
    assert set(split) == set(cut_short) == set(finished) == every, (split, cut_short, finished)
    assert set(given_up) >= every - {"verify"}, given_up
    assert checked > 5000


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize(("pruning", "depth"), [(AEL, 4), (MODERN, 6)], ids=["ael", "modern"])
def test_modes_keep_the_invariants(arenas: dict[int, Arena], workers: int, pruning: Pruning, depth: int) -> None:
    joins = 0
    for seed, policy in enumerate(("knuth", "calibrated", "abdada")):
        arena = arenas[workers]
        watch(arena, MIDDLE_GAME, depth, pruning, policy, seed, every=20 * workers)
        joins += int(arena.worker["joins"].sum())
    assert joins > 20


@pytest.mark.parametrize("phase", PHASES)
def test_a_stop_in_a_phase_leaves_nothing_behind(arenas: dict[int, Arena], phase: int) -> None:
    """Stops while nodes are in the middle of a phase: it stores nothing, and nobody is left inside."""
    arena = arenas[8]
    given_up = 0
    for seed in range(12):
        arena.clear_table()
        arena.clear_learning()
        options = SearchOptions(policy="knuth", pruning=OFTEN)
        write_search(arena, chess.Board(KIWIPETE), Limits(depth=9), options)
        watcher = Watcher(arena, seed)
        watcher.run(1000, steps=5000 + 1000 * seed)
        while not watcher.is_in(phase) and not arena.header["done"][0]:
            watcher.run(1000, steps=5)
        request_stop(arena.context)
        watcher.given_up.clear()
        watcher.run(200)
        assert leftovers(arena) == []
        given_up += watcher.given_up[PHASES[phase]]
    assert given_up >= 8


@pytest.mark.parametrize(("workers", "depth"), [(2, 6), (8, 5), (64, 4)])
@pytest.mark.parametrize("pruning", [AEL, MODERN, OFTEN], ids=["ael", "modern", "often"])
def test_invariants_in_virtual_time(workers: int, depth: int, pruning: Pruning) -> None:
    """After every event; `validate` raises. Ael's tree is the largest, and needs less depth."""
    simulator = Simulator(workers, 1, Costs())
    depth -= 2 if pruning is AEL else 0
    sample = simulator.search("", chess.Board(MIDDLE_GAME), depth, SearchOptions(pruning=pruning), validate=True)
    assert leftovers(simulator.arena) == []
    assert sample.joins > 0
    simulator.close()
