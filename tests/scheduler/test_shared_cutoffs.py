"""How many children were cut off, by which later moves are reduced, is one count for all who search a node's moves."""

from __future__ import annotations

import contextlib
import math
import random
from dataclasses import replace
from types import SimpleNamespace

import chess
import numpy as np
import pytest
from positions import MIDDLE_GAME
from round_robin_entries import step_worker

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
    """Of the two plies behind one."""
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


def test_moves_under_way_count_in_part() -> None:
    """One worker has none; with many the tree is smaller when they count (decision 004)."""
    assert virtual(1, 0, 1).nodes == virtual(1, 100, 1).nodes
    seeds = range(1, 17)
    sizes = [math.prod(virtual(16, percent, seed).nodes for seed in seeds) for percent in (0, 100)]
    assert sizes[1] < sizes[0]


@pytest.mark.parametrize(
    ("percent", "under_way", "more"), [(40, 0, 0), (40, 1, 0), (40, 2, 1), (40, 5, 2), (40, 1023, 409), (0, 1023, 0)]
)
def test_expected_cutoffs(percent: int, under_way: int, more: int) -> None:
    pruning = SimpleNamespace(lmr_under_way=percent)
    assert expected_cutoffs.py_func(pruning, 3, under_way) == 3 + more
