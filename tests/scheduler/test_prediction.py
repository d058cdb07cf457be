"""The counters behind `calibrated`: what a merge makes of the nodes that the workers have counted."""

from __future__ import annotations

from collections.abc import Iterator

import chess
import numpy as np
import pytest

from psearch.arena.arena import Arena
from psearch.arena.setup import write_search
from psearch.core.constants import ALL_NODE, CUT_NODE
from psearch.core.records import CERTAIN, DEPTHS, PROGRESS
from psearch.options import SearchOptions
from psearch.processes.worker import work_alone
from psearch.results import Limits
from psearch.scheduler.entries import merge_now
from psearch.scheduler.policy import GAIN_BUSY

MIDDLE_GAME = "r1bq1rk1/pp3ppp/2n1pn2/3p4/3P4/2PBPN2/P4PPP/R1BQ1RK1 w - - 0 10"
JOIN_COST = 1


@pytest.fixture
def arena() -> Iterator[Arena]:
    made = Arena(3, 1)
    yield made
    made.close()


def test_a_node_counts_at_every_step_that_it_has_passed(arena: Arena) -> None:
    cells = {
        # worker, type, bound, depth, step it ended at, cut: nodes
        (0, CUT_NODE, 0, 3, 0, 1): 70,
        (1, CUT_NODE, 0, 3, 2, 1): 20,
        (2, CUT_NODE, 0, 3, 7, 0): 10,
        (2, ALL_NODE, 2, DEPTHS - 1, 4, 0): 5,
        (0, ALL_NODE, 2, DEPTHS - 1, 4, 1): 3,
    }
    seen = np.zeros(arena.header[0]["prediction"]["all_seen"].shape, np.int64)
    cut = np.zeros_like(seen)
    for (worker, kind, bound, depth, last, did_cut), count in cells.items():
        outcomes = arena.worker["outcomes"][worker]
        outcomes["ended"][kind, bound, depth, last, did_cut] = count
        outcomes["deepest"] = max(int(outcomes["deepest"]), depth)
        for step in range(last + 1):
            seen[kind, bound, depth, step] += count
            cut[kind, bound, depth, step] += count * did_cut
    merge_now(arena.context)
    prediction = arena.header[0]["prediction"]
    for name in ("seen", "all_seen"):
        assert (prediction[name] == seen).all()
    for name in ("cut", "all_cut"):
        assert (prediction[name] == cut).all()
    assert not arena.worker["outcomes"]["ended"].any() and not arena.worker["outcomes"]["deepest"].any()
    assert not prediction["fresh"].any()
    # 20 of the 30 that got to step 1 or 2 cut there, all at step 2; one step of more moves is shared out to them
    cut_by_third = 16 * (CERTAIN - 36000 * CERTAIN // 42000) + CERTAIN * 20
    assert prediction["p_pass"][CUT_NODE, 0, 3, 2] == CERTAIN - cut_by_third // (16 + 30)
    cut_by_fifth = 16 * (CERTAIN - 62500 * CERTAIN // 63500) + CERTAIN * 3
    assert prediction["p_pass"][ALL_NODE, 2, DEPTHS - 1, 4] == CERTAIN - cut_by_fifth // (16 + 8) // 2
    # 10 of 100 did not cut; the prior of a CUT node is worth 16 nodes of 6,000 / 65,536
    assert prediction["p_no_cut"][CUT_NODE, 0, 3, 0] == (16 * 6000 + CERTAIN * 10) // 116

    merge_now(arena.context)
    prediction = arena.header[0]["prediction"]
    assert (prediction["seen"] == seen // 2).all(), "earlier counts are halved"
    assert (prediction["cut"] == cut // 2).all()
    assert (prediction["all_seen"] == seen).all()


def test_counts_of_a_search(arena: Arena) -> None:
    write_search(arena, chess.Board(MIDDLE_GAME), Limits(depth=9), SearchOptions(policy="serial"))
    work_alone(arena.context)
    merge_now(arena.context)
    prediction = arena.header[0]["prediction"]
    seen, cut = prediction["all_seen"], prediction["all_cut"]
    assert seen.sum() > 1000
    assert (np.diff(seen, axis=3) <= 0).all() and (np.diff(cut, axis=3) <= 0).all(), "fewer get further"
    assert (cut <= seen).all() and (cut >= 0).all()
    assert cut[CUT_NODE, :, 1:5, 0].sum() > 0.6 * seen[CUT_NODE, :, 1:5, 0].sum()
    assert (prediction["bin_seen"].sum(axis=1) == [seen[..., 0].sum(), seen[..., 1:].sum()]).all()


def test_below_the_least_depth_no_move_is_worth_the_joins(arena: Arena) -> None:
    options = SearchOptions(policy="calibrated", join_cost=JOIN_COST)
    write_search(arena, chess.Board(MIDDLE_GAME), Limits(depth=9), options)
    work_alone(arena.context)
    merge_now(arena.context)
    prediction = arena.header[0]["prediction"]
    least = int(prediction["least_depth"])
    sizes = [int(size) for size in prediction["size"]]
    assert len(sizes) == DEPTHS and sizes == sorted(sizes)
    assert 1 < least < 9 and PROGRESS == 8
    assert all(size < GAIN_BUSY * JOIN_COST for size in sizes[: least - 1]), "a node's moves are a ply smaller than it"
    assert sizes[least - 1] >= GAIN_BUSY * JOIN_COST
