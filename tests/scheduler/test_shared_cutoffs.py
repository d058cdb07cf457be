"""Workers at one node: they share the count of cutoffs by which moves are reduced, and pass over locked nodes."""

from __future__ import annotations

import contextlib
import math
import random
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace

import chess
import numpy as np
import pytest
from positions import MIDDLE_GAME
from round_robin_entries import ROUND_ROBIN, step_worker

from psearch.arena.arena import Arena
from psearch.arena.setup import write_search
from psearch.options import SearchOptions
from psearch.results import Limits
from psearch.scheduler.scheduler_entries import is_done, load_kernels
from psearch.simulation.costs import Costs
from psearch.simulation.simulator import Simulator, VirtualSample
from psearch_core.chess.pruning.move_pruning import expected_cutoffs
from psearch_core.constants import STATE_CHILD, STATE_IDLE, STATE_NEXT
from psearch_core.records import MAX_PLY
from psearch_core.records.pruning_record import MODES

WORKERS = 4


def counts(arena: Arena, stack: int, ply: int) -> np.ndarray:
    return arena.stack["cutoffs"][stack, ply + 1 : ply + 3].astype(int)


def test_helpers_begin_with_what_is_counted_and_add_their_own() -> None:
    load_kernels()
    dice = random.Random(5)
    begun = told = beside = 0
    with contextlib.closing(Arena(WORKERS, 1)) as arena:
        write_search(arena, chess.Board(MIDDLE_GAME), Limits(depth=7), SearchOptions())
        worker, frames, stacks = arena.worker, arena.frames, arena.stack
        while not is_done(arena.context):
            index = dice.randrange(WORKERS)
            state, stack, ply = (int(worker[name][index]) for name in ("state", "stack", "ply"))
            reports = state == STATE_CHILD and stacks["home"][stack] >= 0 and stacks["base"][stack] == ply
            if not reports and state != STATE_IDLE:
                step_worker(arena.context, index, 1)
                if state == STATE_NEXT and (worker["stack"][index], worker["ply"][index]) == (stack, ply + 1):
                    visit = frames["visit"][stack * MAX_PLY + ply]  # a move was taken
                    node = frames["node"][int(visit["home"])]
                    assert visit["under_way"] == (int(node["inside"]) - 1 if node["open"] else 0)
                    beside += int(visit["under_way"] > 0)
                continue
            home = int(stacks["home"][stack]) if reports else -1
            before = after = np.zeros(2, int)
            if reports:
                own = counts(arena, stack, ply) - stacks["cutoffs_taken"][stack]
                assert (own >= 0).all(), "nobody takes back what has been cut off"
                before = counts(arena, home // MAX_PLY, ply)
                after = before + own
            step_worker(arena.context, index, 1)
            stack_now = int(worker["stack"][index])
            if reports and (stack_now, int(worker["ply"][index])) == (stack, ply + 1):
                visit = frames["visit"][stack * MAX_PLY + ply]  # the next move was taken under the same lock
                beside += int(visit["under_way"] > 0)
            if reports and stack_now == stack:  # else the node was closed, and is left
                assert (counts(arena, home // MAX_PLY, ply) == after).all()
                assert (stacks["cutoffs_taken"][stack] == after).all()
                told += int((after > before).any())
            elif state == STATE_IDLE and stack_now >= 0:
                home, ply = int(stacks["home"][stack_now]), int(stacks["base"][stack_now])
                assert frames["visit"]["under_way"][stack_now * MAX_PLY + ply] == frames["node"]["inside"][home] - 1
                begun += int(counts(arena, home // MAX_PLY, ply)[0] > 0)
                assert (counts(arena, stack_now, ply) == counts(arena, home // MAX_PLY, ply)).all()
                assert (stacks["cutoffs_taken"][stack_now] == counts(arena, stack_now, ply)).all()
        assert frames["node"]["open"].sum() == 0
    assert beside > 20
    assert begun > 20
    assert told > 20


def virtual(workers: int, percent: int, seed: int) -> VirtualSample:
    options = SearchOptions(pruning=replace(MODES["modern"], lmr_under_way=percent))
    with contextlib.closing(Simulator(workers, 16, Costs())) as simulator:
        return simulator.search("x", chess.Board(MIDDLE_GAME), 11, options, history=seed)


@pytest.mark.timeout(600)  # two minutes on a quiet machine, in the build with checks
def test_moves_under_way_count_in_part() -> None:
    """One worker has none; with many the tree is smaller when they count (decision 004)."""
    assert virtual(1, 0, 1).nodes == virtual(1, 100, 1).nodes
    seeds = range(17, 33)  # x0.82; 64 seeds x0.87, sixteen of them up to x1.08
    sizes = [math.prod(virtual(16, percent, seed).nodes for seed in seeds) for percent in (0, 100)]
    assert sizes[1] < sizes[0]


@pytest.mark.parametrize(
    ("percent", "under_way", "more"), [(40, 0, 0), (40, 1, 0), (40, 2, 1), (40, 5, 2), (40, 1023, 409), (0, 1023, 0)]
)
def test_expected_cutoffs(percent: int, under_way: int, more: int) -> None:
    pruning = SimpleNamespace(lmr_under_way=percent)
    assert expected_cutoffs.py_func(pruning, 3, under_way) == 3 + more


NOTHING_SHARED = replace(Costs().without_sharing(), lock=0.0)


@pytest.fixture(scope="module", autouse=True)
def kernels() -> None:
    load_kernels(ROUND_ROBIN)


def offers(arena: Arena) -> list[int]:
    """Frame numbers of all nodes that are offered, the most valuable first."""
    found = []
    for stack, words in enumerate(arena.stack["open_mask"].tolist()):
        bits = words[0] % (1 << 64) | words[1] % (1 << 64) << 64
        found += [stack * MAX_PLY + ply for ply in range(MAX_PLY) if bits >> ply & 1]
    return sorted(found, key=lambda home: -int(arena.frames["node"]["priority"][home]))


def moments_with_offers(arena: Arena, least: int) -> Iterator[int]:
    """An idle worker, whenever so many nodes are offered; the search goes on as it comes in between."""
    dice = random.Random(3)
    write_search(arena, chess.Board(MIDDLE_GAME), Limits(depth=9), SearchOptions(join_cost=1))
    for index in range(WORKERS):
        step_worker(arena.context, index, 1)  # it begins
    while not is_done(arena.context):
        index = dice.randrange(WORKERS)
        if arena.worker["state"][index] == STATE_IDLE and len(offers(arena)) >= least:
            yield index
        step_worker(arena.context, index, 1)


def test_a_held_node_is_passed_over() -> None:
    moments = joined = 0
    with contextlib.closing(Arena(WORKERS, 1)) as arena:
        for index in moments_with_offers(arena, 2):
            worker, locks, open_nodes = arena.worker[index], arena.frames["node"]["lock"], offers(arena)
            counters = worker["counters"]
            passed, joins = int(counters["held_offers"]), int(counters["joins"])

            locks[open_nodes] = 1
            assert step_worker(arena.context, index, 1) > 0, "it finds nothing"
            assert worker["state"] == STATE_IDLE
            assert (int(counters["held_offers"]), int(counters["joins"])) == (passed + len(open_nodes), joins)
            assert (locks[open_nodes] == 1).all(), "nobody else's lock is given back"

            locks[open_nodes[-1]] = 0
            step_worker(arena.context, index, 1)
            if worker["state"] != STATE_IDLE:  # else it was out of moves
                assert arena.stack["home"][int(worker["stack"])] == open_nodes[-1], "the least valuable, for it is free"
                joined += 1
            locks[open_nodes] = 0
            moments += 1
    assert moments > 60
    assert joined > moments // 2


@pytest.mark.parametrize(("cost", "passed"), [("lock", True), ("hold_join", True), ("join", False)])
def test_in_virtual_time_a_lock_is_held_by_the_clock(cost: str, passed: bool) -> None:
    with contextlib.closing(Simulator(16, 4, replace(NOTHING_SHARED, **{cost: 3000.0}))) as simulator:
        simulator.search("x", chess.Board(MIDDLE_GAME), 8, SearchOptions())
        assert (int(simulator.arena.worker["counters"]["held_offers"].sum()) > 0) == passed


def test_a_look_that_costs_nothing_ends() -> None:
    """A worker that finds held nodes only looks again: not for ever at the same moment."""
    costs = replace(NOTHING_SHARED, poll=0.0, poll_stack=0.0, hold_join=3000.0)
    with contextlib.closing(Simulator(16, 4, costs)) as simulator:
        assert simulator.search("x", chess.Board(MIDDLE_GAME), 8, SearchOptions()).nodes > 0
        assert int(simulator.arena.worker["counters"]["held_offers"].sum()) > 0
