"""The counters behind `calibrated`: what a merge makes of the nodes that the workers have counted."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import chess
import numpy as np
import pytest
from round_robin_entries import run_interleaved, step_worker

from psearch.arena.arena import Arena
from psearch.arena.setup import write_search
from psearch.options import SearchOptions
from psearch.processes.worker_main import work_alone
from psearch.results import Limits
from psearch.scheduler.scheduler_entries import merge_now
from psearch_core.constants import ALL_NODE, CUT_NODE, PV_NODE
from psearch_core.records import BINS, CERTAIN, DEPTHS

MIDDLE_GAME = "r1bq1rk1/pp3ppp/2n1pn2/3p4/3P4/2PBPN2/P4PPP/R1BQ1RK1 w - - 0 10"


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


def test_full_counters_stay_full(arena: Arena) -> None:
    """An iteration of many hours must not wrap them: probabilities would leave their range."""
    write_search(arena, chess.Board(MIDDLE_GAME), Limits(depth=7), SearchOptions(policy="serial"))
    while arena.header[0]["depth"] < 7:
        step_worker(arena.context, 0, 10)
    full = np.iinfo(np.int32).max
    arena.worker["outcomes"]["ended"][0] = full
    arena.worker["outcomes"]["deepest"] = DEPTHS - 1
    step_worker(arena.context, 0, 1000)
    assert arena.header[0]["depth"] == 7 and arena.worker["outcomes"]["move_sizes"][0].any()
    assert (arena.worker["outcomes"]["ended"][0] == full).all()
    merge_now(arena.context)
    prediction = arena.header[0]["prediction"]
    for name in ("p_no_cut", "p_pass"):
        assert (prediction[name] >= 0).all() and (prediction[name] <= CERTAIN).all()


def test_the_squared_errors_of_full_counters_are_right(arena: Arena) -> None:
    """A count times a square in full passes 64 bits."""
    outcomes, prediction = arena.worker["outcomes"], arena.header[0]["prediction"]
    for p, cuts in ((0, 0), (1, 1), (CERTAIN // 3, 1), (CERTAIN, 0)):
        arena.header["prediction"] = 0
        prediction["p_no_cut"] = p
        full = int(np.iinfo(np.int32).max)
        outcomes["ended"][:, CUT_NODE, 0, 2, 7] = (full, full * cuts)
        outcomes["deepest"] = 2
        merge_now(arena.context)
        no_cut, cut = len(outcomes) * full, len(outcomes) * full * cuts
        error = (no_cut * (CERTAIN - p) ** 2 + cut * p**2) >> 16
        slot = min(p * BINS // CERTAIN, BINS - 1)
        assert prediction["bin_seen"][:, slot].tolist() == [no_cut + cut, 7 * (no_cut + cut)]
        assert prediction["bin_p"][0, slot] == p * (no_cut + cut)
        assert prediction["bin_error"][0, slot] == error
        assert prediction["bin_error"][1, slot] == 7 * error


def test_full_bins_stay_as_they_are(arena: Arena) -> None:
    """Their sums have no room for more: what they say is a mean, and keeps its parts together."""
    names = ("bin_seen", "bin_no_cut", "bin_p", "bin_error")
    prediction = arena.header[0]["prediction"]
    for number, name in enumerate(names):
        prediction[name] = (1 << 62) - number
    before = {name: prediction[name].copy() for name in names}
    arena.worker["outcomes"]["ended"] = np.iinfo(np.int32).max
    arena.worker["outcomes"]["deepest"] = DEPTHS - 1
    merge_now(arena.context)
    assert all((prediction[name] == before[name]).all() for name in names)


def test_sizes_have_a_limit(arena: Arena) -> None:
    """Twice the size below, ply by ply, leaves 64 bits where a small depth has taken long."""
    arena.worker["outcomes"]["move_sizes"][0, CUT_NODE, 1, 2] = (3, 1 << 55)
    merge_now(arena.context)
    sizes = arena.header[0]["prediction"]["move_size"]
    assert sizes[CUT_NODE, :, 2].tolist() == [2] + [1 << 40] * (DEPTHS - 1)
    assert sizes[CUT_NODE, :, 3].tolist() == [2 << depth for depth in range(DEPTHS)], "nothing was seen of these"


def test_the_size_of_a_move_is_the_mean_by_type_depth_and_number(arena: Arena) -> None:
    counted = arena.worker["outcomes"]["move_sizes"]
    counted[0, ALL_NODE, 5, 3] = (10, 400)
    counted[2, ALL_NODE, 5, 3] = (30, 440)
    merge_now(arena.context)
    prediction = arena.header[0]["prediction"]
    assert prediction["move_size"][ALL_NODE, 5, 3] == 840 // 40 and not counted.any()
    counted[1, ALL_NODE, 5, 3] = (20, 20)
    merge_now(arena.context)
    assert prediction["move_size"][ALL_NODE, 5, 3] == (420 + 20) // 40, "earlier counts are halved"


@pytest.mark.parametrize("scale", [1, 10**6])
def test_the_cost_of_a_join_after_a_week(arena: Arena, scale: int) -> None:
    """Counts of 1,024 workers in a week: each fits into 64 bits, their products do not."""
    counters = arena.worker["counters"]
    counters["joins"] = 10**3 * scale
    counters["join_cycles"] = 5 * 10**6 * scale
    counters["search_cycles"] = 10**12 * scale
    counters["idle_cycles"] = 10**11 * scale
    arena.worker["nodes"] = 5 * 10**8 * scale
    merge_now(arena.context)
    assert arena.header[0]["prediction"]["join_cost"] == 5 * 10**6 // 10**3 * (5 * 10**8) // (9 * 10**11) == 2


@pytest.mark.parametrize(("join_cycles", "least", "most"), [(0, 1, 1), (1 << 62, 1000, 1000), (-(1 << 40), 1, 1)])
def test_the_cost_of_a_join_has_limits(arena: Arena, join_cycles: int, least: int, most: int) -> None:
    """Whatever the clocks of the cores say."""
    arena.worker["counters"]["joins"] = 64
    arena.worker["counters"]["join_cycles"] = join_cycles
    arena.worker["counters"]["search_cycles"] = 1 << 40
    arena.worker["nodes"] = 1 << 30
    merge_now(arena.context)
    assert least <= arena.header[0]["prediction"]["join_cost"] <= most


def test_counts_of_a_search(arena: Arena) -> None:
    write_search(arena, chess.Board(MIDDLE_GAME), Limits(depth=9), SearchOptions(policy="serial"))
    work_alone(arena)
    merge_now(arena.context)
    prediction = arena.header[0]["prediction"]
    seen, cut = prediction["all_seen"], prediction["all_cut"]
    assert seen.sum() > 1000
    assert (np.diff(seen, axis=3) <= 0).all() and (np.diff(cut, axis=3) <= 0).all(), "fewer get further"
    assert (cut <= seen).all() and (cut >= 0).all()
    assert cut[CUT_NODE, :, 1:5, 0].sum() > 0.6 * seen[CUT_NODE, :, 1:5, 0].sum()
    assert (prediction["bin_seen"].sum(axis=1) == [seen[..., 0].sum(), seen[..., 1:].sum()]).all()


def test_sizes_count_all_nodes_of_a_move_whoever_searches_them(arena: Arena) -> None:
    """The moves of the root, one after the other, are all that a search consists of."""
    write_search(arena, chess.Board(MIDDLE_GAME), Limits(depth=9), SearchOptions(policy="calibrated", aspiration=0))
    for seed in itertools.count():
        if arena.header[0]["depth"] == 9:  # seen at once: no move has nodes yet
            break
        run_interleaved(arena.context, seed, 1, 1)
    counted = arena.worker["outcomes"]["move_sizes"][:, PV_NODE, 9].sum(axis=(0, 1))
    before = int(arena.worker["nodes"].sum()) - int(counted[1])
    assert run_interleaved(arena.context, 3, 20, 10**7) > 0
    counted = arena.worker["outcomes"]["move_sizes"][:, PV_NODE, 9].sum(axis=(0, 1))
    nodes = int(arena.worker["nodes"].sum()) - before
    assert arena.worker["counters"]["joins"].sum() > 20
    assert 0.9 * nodes < counted[1] <= nodes, (counted, nodes)


def root_nodes(arena: Arena) -> list[int]:
    """Nodes counted below each move of the root."""
    header = arena.header[0]
    return [int(nodes) for nodes in header["root_nodes"][: header["root_count"]]]


def shares(arena: Arena) -> list[int]:
    """Shares of the best move in the reports of a search that has fewer than the ring holds."""
    header = arena.header[0]
    return [int(share) for share in header["infos"]["share"][: header["info_count"]]]


def test_nodes_below_each_move_of_the_root_are_counted_exactly_by_one_worker() -> None:
    arena = Arena(1, 1)
    write_search(arena, chess.Board(MIDDLE_GAME), Limits(depth=16), SearchOptions())
    work_alone(arena)
    nodes = int(arena.worker["nodes"].sum())
    searches = len(shares(arena))  # each counts the root itself
    assert nodes - searches <= sum(root_nodes(arena)) < nodes
    header = arena.header[0]
    moves = header["root_moves"][: header["root_count"]].tolist()
    below_best = root_nodes(arena)[moves.index(header["best_move"])]
    assert shares(arena)[-1] == 1000 * below_best // sum(root_nodes(arena)) > 0
    reported = header["infos"]["nodes"][: header["info_count"]]
    for share, so_far in zip(shares(arena), reported.tolist(), strict=True):
        assert (share >= 0) == (so_far - searches > 50_000), "small searches say nothing of their moves"
    assert shares(arena)[0] == -1
    arena.close()


def test_moves_of_the_root_are_searched_in_the_order_of_the_nodes_below_them() -> None:
    """The lines come first, in their order. What the iteration before found decides, so it is searched alone, too."""
    for multipv in (1, 2):
        arena = Arena(1, 1)
        for depth in (7, 8):
            arena.forget()
            write_search(arena, chess.Board(MIDDLE_GAME), Limits(depth=depth), SearchOptions(), multipv=multipv)
            work_alone(arena)
            moves = arena.stack["root_moves"][0, : arena.header[0]["root_count"]].tolist()
            if depth == 7:
                header = arena.header[0]
                by_code = header["root_moves"][: len(moves)].tolist()
                nodes = dict(zip(by_code, root_nodes(arena), strict=True))
                expected = moves[:multipv] + sorted(moves[multipv:], key=nodes.__getitem__, reverse=True)
        assert set(moves[:multipv]) == set(expected[:multipv]), "this position must keep its best moves"
        assert moves[multipv:] == expected[multipv:] != sorted(moves[multipv:])
        arena.close()


def test_nodes_of_helpers_count_for_the_move_of_the_root(arena: Arena) -> None:
    write_search(arena, chess.Board(MIDDLE_GAME), Limits(depth=16), SearchOptions(policy="calibrated"))
    assert run_interleaved(arena.context, 3, 20, 10**7) > 0
    nodes = int(arena.worker["nodes"].sum())
    assert arena.worker["counters"]["joins"].sum() > 20
    assert 0.85 * nodes < sum(root_nodes(arena)) < nodes
    assert 0 < shares(arena)[-1] < 1000


def test_shares_of_several_lines_and_of_null_windows_are_not_reported(arena: Arena) -> None:
    for multipv, null_windows in ((2, 0), (1, 6)):
        write_search(arena, chess.Board(MIDDLE_GAME), Limits(depth=16), SearchOptions(), multipv=multipv)
        arena.header[0]["options"]["null_windows"] = null_windows
        assert run_interleaved(arena.context, 3, 20, 10**7) > 0
        assert sum(root_nodes(arena)) > 50_000 and set(shares(arena)) == {-1}


def test_late_moves_are_smaller_than_first_ones(arena: Arena) -> None:
    write_search(arena, chess.Board(MIDDLE_GAME), Limits(depth=11), SearchOptions(policy="calibrated"))
    assert run_interleaved(arena.context, 3, 20, 10**7) > 0
    merge_now(arena.context)
    sizes = arena.header[0]["prediction"]["move_size"]
    assert (sizes >= 1).all()
    for depth in (4, 5, 6, 7):
        assert sizes[ALL_NODE, depth, 7] < sizes[ALL_NODE, depth, 0]
        assert sizes[CUT_NODE, depth, 0] < sizes[CUT_NODE, depth + 2, 0]


def test_moves_that_are_not_worth_the_joins_are_not_shared(arena: Arena) -> None:
    """PV nodes alone are opened if a join costs more than any move."""
    opens = []
    for cost in (1, 1000):
        arena.forget()
        write_search(arena, chess.Board(MIDDLE_GAME), Limits(depth=10), SearchOptions(join_cost=cost))
        assert run_interleaved(arena.context, 3, 20, 10**7) > 0
        opens.append(int(arena.worker["counters"]["opens"].sum()))
    assert opens[1] < opens[0] / 2
