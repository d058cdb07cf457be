"""How many children were cut off, by which later moves are reduced, is one count for all who search a node's moves."""

from __future__ import annotations

import contextlib
import random

import chess
import numpy as np
from positions import MIDDLE_GAME

from psearch.arena.arena import Arena
from psearch.arena.setup import write_search
from psearch.core.constants import STATE_CHILD, STATE_IDLE
from psearch.core.records import MAX_PLY
from psearch.options import SearchOptions
from psearch.results import Limits
from psearch.scheduler.entries import is_done, load_kernels
from psearch.simulation.entries import step_worker

WORKERS = 4


def counts(arena: Arena, stack: int, ply: int) -> np.ndarray:
    """Of the two plies behind one."""
    return arena.stack["cutoffs"][stack, ply + 1 : ply + 3].astype(int)


def test_helpers_begin_with_what_is_counted_and_add_their_own() -> None:
    load_kernels()
    dice = random.Random(5)
    begun = told = 0
    with contextlib.closing(Arena(WORKERS, 1)) as arena:
        write_search(arena, chess.Board(MIDDLE_GAME), Limits(depth=7), SearchOptions())
        worker, frames, stacks = arena.worker, arena.frames, arena.stack
        while not is_done(arena.context):
            index = dice.randrange(WORKERS)
            state, stack, ply = (int(worker[name][index]) for name in ("state", "stack", "ply"))
            reports = state == STATE_CHILD and stacks["home"][stack] >= 0 and stacks["base"][stack] == ply
            if not reports and state != STATE_IDLE:
                step_worker(arena.context, index, 1)
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
            if reports and stack_now == stack:  # else the node was closed, and is left
                assert (counts(arena, home // MAX_PLY, ply) == after).all()
                assert (stacks["cutoffs_taken"][stack] == after).all()
                told += int((after > before).any())
            elif state == STATE_IDLE and stack_now >= 0:
                home, ply = int(stacks["home"][stack_now]), int(stacks["base"][stack_now])
                begun += int(counts(arena, home // MAX_PLY, ply)[0] > 0)
                assert (counts(arena, stack_now, ply) == counts(arena, home // MAX_PLY, ply)).all()
                assert (stacks["cutoffs_taken"][stack_now] == counts(arena, stack_now, ply)).all()
        assert frames["node"]["open"].sum() == 0
    assert begun > 20
    assert told > 20
