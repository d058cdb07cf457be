"""Passes of a node with several workers: they are split, and given up in the middle, like any search.

Every step is watched: what a worker does while it unwinds, or at the end of a pass that only prepares, leaves the
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
from pruning_probes import MARGINS_BY_HAND
from round_robin_entries import step_worker

from psearch.arena.arena import Arena
from psearch.arena.setup import write_search
from psearch.arena.validate import describe, leftovers, violations
from psearch.options import SearchOptions
from psearch.results import Limits
from psearch.scheduler.scheduler_entries import request_stop
from psearch.simulation.costs import Costs
from psearch.simulation.simulator import Simulator
from psearch_core.constants import (
    CLOSED_CUTOFF,
    PASS_IID,
    PASS_MAIN,
    PASS_PROBCUT,
    PASS_SINGULAR,
    PASS_VERIFY,
    STATE_FINISH,
    STATE_IDLE,
    STATE_UNWIND,
)
from psearch_core.records import MAX_PLY
from psearch_core.records.pruning_record import AEL, MODERN, Pruning

_PREPARING = (PASS_VERIFY, PASS_IID, PASS_SINGULAR)
"""passes at whose end nothing is stored"""
PASSES = {PASS_VERIFY: "verify", PASS_IID: "iid", PASS_PROBCUT: "probcut", PASS_SINGULAR: "singular"}
# every pass, and near the leaves, so that small trees are full of them
OFTEN = replace(
    MODERN,
    **MARGINS_BY_HAND
    | {
        "null_verify": 1,
        "null_verify_depth": 3,
        "iid": 1,
        "iid_depth": 3,
        "iir": 0,
        "probcut": 1,
        "probcut_depth": 4,
        "probcut_margin": 50,
        "singular": 1,
        "singular_depth": 4,
        "lmp": 0,
        "move_futility": 0,
    },
)
WORKERS = (2, 8, 64)


@pytest.fixture(scope="module")
def arenas() -> Iterator[dict[int, Arena]]:
    made = {workers: Arena(workers, 1) for workers in WORKERS}
    yield made
    for arena in made.values():
        arena.close()


class Watcher:
    """Runs a search one step at a time, workers drawn at random, and notes what happens inside passes."""

    def __init__(self, arena: Arena, seed: int) -> None:
        self.arena = arena
        self.dice = random.Random(seed)
        self.split: Counter[str] = Counter()
        """Steps after which several workers were inside a node in this pass."""
        self.given_up: Counter[str] = Counter()
        """Unwindings through a node in this pass that were caused by something above it, or by a stop."""
        self.cut_short: Counter[str] = Counter()
        """Unwindings that ended at a node whose pass another worker had cut off."""
        self.finished: Counter[str] = Counter()
        self.checked = 0
        # fields as arrays: a view of a whole record costs more than a step
        self._states, self._stacks, self._plies = (arena.worker[name] for name in ("state", "stack", "ply"))
        self._homes = arena.frames["visit"]["home"]
        nodes = arena.frames["node"]
        self._open, self._inside, self._pass_kind, self._closed = (
            nodes[name] for name in ("open", "inside", "pass_kind", "closed")
        )

    def step(self, index: int) -> None:
        state = int(self._states[index])
        if state not in (STATE_UNWIND, STATE_FINISH):
            step_worker(self.arena.context, index, 1)
        else:
            self._checked_step(index, state)
        stack = int(self._stacks[index])
        if stack >= 0:
            home = self._homes[stack * MAX_PLY + int(self._plies[index])]
            if self._open[home] and self._inside[home] > 1 and self._pass_kind[home] in PASSES:
                self.split[PASSES[int(self._pass_kind[home])]] += 1

    def _checked_step(self, index: int, state: int) -> None:
        ply = int(self._plies[index])
        frame = int(self._stacks[index]) * MAX_PLY + ply
        pass_kind, name, closed = PASS_MAIN, None, 0
        if state == STATE_FINISH:
            pass_kind = int(self._pass_kind[frame])
            assert not self._open[frame], "whoever leaves last closes it"
        elif ply > 0:
            home = int(self._homes[frame - 1])
            name = PASSES.get(int(self._pass_kind[home]))
            closed = int(self._closed[home]) if self._open[home] else 0
        before = self.arena.tt.copy() if state == STATE_UNWIND or pass_kind in _PREPARING else None
        step_worker(self.arena.context, index, 1)
        if before is not None:
            assert np.array_equal(before, self.arena.tt), PASSES.get(pass_kind, "unwinding")
            self.checked += 1
        if name is not None:
            short = closed == CLOSED_CUTOFF and int(self._states[index]) != STATE_UNWIND
            (self.cut_short if short else self.given_up)[name] += 1
        elif pass_kind != PASS_MAIN:
            self.finished[PASSES[pass_kind]] += 1

    def is_in(self, pass_kind: int) -> bool:
        """Whether a worker is below a move of a node in this pass."""
        for index in np.flatnonzero(self._stacks >= 0):
            first = int(self._stacks[index]) * MAX_PLY
            homes = self._homes[first + 1 : first + int(self._plies[index])]
            if (self._pass_kind[homes] == pass_kind).any():
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
    arena.forget()
    write_search(arena, chess.Board(fen), Limits(depth=depth), SearchOptions(policy=policy, pruning=pruning))
    watcher = Watcher(arena, seed)
    watcher.run(every)
    assert leftovers(arena) == []
    assert int(arena.worker["counters"]["adopts"].sum()) == int(arena.worker["counters"]["parks"].sum())
    return watcher


@pytest.mark.slow
def test_passes_are_split_and_given_up(arenas: dict[int, Arena]) -> None:
    """Every kind of pass: by several workers at once, to its end, cut short by one, given up for what is above.

    Nothing is stored by the way (the watcher's business), and every invariant holds.
    """
    split: Counter[str] = Counter()
    given_up: Counter[str] = Counter()
    cut_short: Counter[str] = Counter()
    finished: Counter[str] = Counter()
    checked = 0
    searches = [(KIWIPETE, "knuth"), (MIDDLE_GAME, "knuth"), (KIWIPETE, "ybw"), (MIDDLE_GAME, "calibrated")]
    searches += [(MIDDLE_GAME, "ybw"), (KIWIPETE, "calibrated")]
    for workers in WORKERS:
        for seed, (fen, policy) in enumerate(searches[:1] if workers == 64 else searches):
            watcher = watch(arenas[workers], fen, 8, OFTEN, policy, seed, every=1000)
            split += watcher.split
            given_up += watcher.given_up
            cut_short += watcher.cut_short
            finished += watcher.finished
            checked += watcher.checked
    every = set(PASSES.values())
    to_see = every - {"verify"}
    for seed in range(len(searches), 30):  # which of them a few searches see depends on the network
        if set(given_up) >= to_see:
            break
        fen, policy = searches[seed % len(searches)]
        watcher = watch(arenas[WORKERS[seed % 2]], fen, 8, OFTEN, policy, seed, every=1000)
        given_up += watcher.given_up
    assert set(split) == set(cut_short) == set(finished) == every, (split, cut_short, finished)
    assert set(given_up) >= to_see, given_up
    assert checked > 5000


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize(("pruning", "depth"), [(AEL, 4), (MODERN, 6)], ids=["ael", "modern"])
def test_modes_keep_the_invariants(arenas: dict[int, Arena], workers: int, pruning: Pruning, depth: int) -> None:
    joins = 0
    for seed, policy in enumerate(("knuth", "calibrated", "abdada")):
        arena = arenas[workers]
        watch(arena, MIDDLE_GAME, depth, pruning, policy, seed, every=20 * workers)
        joins += int(arena.worker["counters"]["joins"].sum())
    assert joins > 20


@pytest.mark.parametrize("pass_kind", PASSES)
def test_a_stop_in_a_pass_leaves_nothing_behind(arenas: dict[int, Arena], pass_kind: int) -> None:
    """Stops while nodes are in the middle of a pass: it stores nothing, and nobody is left inside."""
    arena = arenas[8]
    given_up = 0
    for seed in range(24):
        if given_up >= 8:
            break
        arena.forget()
        options = SearchOptions(policy="knuth", pruning=OFTEN)
        write_search(arena, chess.Board(KIWIPETE), Limits(depth=9), options)
        watcher = Watcher(arena, seed)
        watcher.run(1000, steps=5000 + 1000 * seed)
        while not watcher.is_in(pass_kind) and not arena.header["done"][0]:
            watcher.run(1000, steps=5)
        request_stop(arena.context)
        watcher.given_up.clear()
        watcher.run(200)
        assert leftovers(arena) == []
        given_up += watcher.given_up[PASSES[pass_kind]]
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
