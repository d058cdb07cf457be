"""Workers in search of work pass over nodes that another worker has locked, in real and in virtual time."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from dataclasses import replace

import chess
import pytest
from positions import MIDDLE_GAME
from round_robin_entries import ROUND_ROBIN, step_worker

from psearch.arena.arena import Arena
from psearch.arena.setup import write_search
from psearch.options import SearchOptions
from psearch.results import Limits
from psearch.scheduler.scheduler_entries import is_done, load_kernels
from psearch.simulation.costs import Costs
from psearch.simulation.simulator import Simulator
from psearch_core.constants import STATE_IDLE
from psearch_core.records import MAX_PLY

WORKERS = 4
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
