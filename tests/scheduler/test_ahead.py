"""Workers that find no work search the root one ply deeper, and leave nothing of it behind but entries of the table."""

from __future__ import annotations

import random
from dataclasses import replace

import chess
import pytest
from positions import MIDDLE_GAME

from psearch.arena.arena import Arena
from psearch.arena.setup import write_search
from psearch.arena.validate import describe, leftovers, violations
from psearch.options import SearchOptions
from psearch.results import Limits
from psearch.scheduler.entries import is_done, load_kernels, request_stop
from psearch.simulation.costs import Costs
from psearch.simulation.entries import VIRTUAL, run_interleaved, step_worker
from psearch.simulation.simulator import Simulator

WORKERS = 8
MAX_TURNS = 20_000_000
PAWN_ENDING = "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1"
AHEAD = SearchOptions(ahead=True)


@pytest.fixture(scope="module", autouse=True)
def kernels() -> None:
    load_kernels(VIRTUAL)


@pytest.fixture(scope="module")
def arena() -> Arena:
    return Arena(WORKERS, 1)


def test_the_value_is_that_of_one_worker(arena: Arena) -> None:
    """Without a table what is searched ahead can do nothing to it."""
    plain = SearchOptions.plain()
    values = []
    for options, seeds in ((plain, (1,)), (replace(plain, ahead=True), (1, 2, 3, 4))):
        for seed in seeds:
            write_search(arena, chess.Board(PAWN_ENDING), Limits(depth=6), options)
            assert run_interleaved(arena.context, seed, 20, MAX_TURNS) >= 0, describe(arena)
            assert leftovers(arena) == []
            values.append(int(arena.header[0]["score"]))
    assert len(set(values)) == 1


@pytest.mark.parametrize("stopped", [False, True])
def test_stacks_are_given_back(arena: Arena, stopped: bool) -> None:
    """While the search goes on, when it ends by itself, and when it is stopped: the one who is last sets `done`."""
    dice = random.Random(3)
    arena.forget()
    write_search(arena, chess.Board(MIDDLE_GAME), Limits(depth=8), AHEAD)
    worker, stacks = arena.worker, arena.stack
    begun = deepest = turns = 0
    while not is_done(arena.context):
        index = dice.randrange(WORKERS)
        was_ahead = bool(worker["ahead"][index])
        step_worker(arena.context, index, dice.randrange(1, 40))
        turns += 1
        if worker["ahead"][index] and not was_ahead:
            begun += 1
            stack = int(worker["stack"][index])
            assert stacks["home"][stack] == -1
            assert stacks["root_depth"][stack] == arena.header[0]["depth"] + 1
            deepest = max(deepest, int(arena.header[0]["depth"]))
        if turns % 50 == 0:
            assert violations(arena) == [], describe(arena)
            for number in worker["stack"][worker["ahead"] == 1]:
                assert (stacks["open_mask"][number] == 0).all(), "nothing ahead is opened"
        if stopped and begun == 20:
            request_stop(arena.context)
    assert begun >= 20 and deepest >= 5
    assert not worker["ahead"].any() and leftovers(arena) == []
    assert arena.header[0]["roots"] == 0


def test_time_without_work_is_used() -> None:
    """On a tree that is small for so many; the same each time."""
    simulator = Simulator(32, 4, Costs())
    board = chess.Board(MIDDLE_GAME)
    idle = simulator.search("", board, 13, SearchOptions())
    first, again = (simulator.search("", board, 13, AHEAD) for _ in range(2))
    assert first == again
    assert first.idle_share < 0.75 * idle.idle_share and first.nodes > idle.nodes
    assert leftovers(simulator.arena) == []
    simulator.close()


def test_never_where_it_is_of_no_use(arena: Arena) -> None:
    """With several lines, and where every worker has a root of its own."""
    dice = random.Random(1)
    for options, lines in ((AHEAD, 2), (replace(AHEAD, policy="lazy"), 1)):
        write_search(arena, chess.Board(MIDDLE_GAME), Limits(depth=6), options, multipv=lines)
        while not is_done(arena.context):
            step_worker(arena.context, dice.randrange(WORKERS), 200)
            assert not arena.worker["ahead"].any()
