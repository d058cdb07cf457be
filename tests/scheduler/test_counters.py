"""Counters as they stand after a week of 1,024 workers: a search goes on as it does with fresh ones."""

from __future__ import annotations

from collections.abc import Iterator

import chess
import numpy as np
import pytest
from round_robin_entries import run_interleaved

from psearch.arena.arena import Arena
from psearch.arena.setup import write_search
from psearch.arena.validate import leftovers
from psearch.faces.uci.turn import info_line, statistics_line
from psearch.options import SearchOptions
from psearch.processes.search_reports import Reports
from psearch.processes.worker_main import work_alone
from psearch.results import Limits
from psearch.scheduler.scheduler_entries import load_kernels
from psearch_core.constants import AGES
from psearch_core.records import INFO_RING, WORKER_BITS

MIDDLE_GAME = "r1bq1rk1/pp3ppp/2n1pn2/3p4/3P4/2PBPN2/P4PPP/R1BQ1RK1 w - - 0 10"
WEEK_S = 7 * 24 * 3600
WEEK_NODES = 3_000_000 * WEEK_S
"""of one worker"""
WEEK_CYCLES = 5_000_000_000 * WEEK_S
WORKERS = 3
ALL_NODES = WEEK_NODES * 1024 // WORKERS
"""of one worker here, so that the sum is that of 1,024"""


@pytest.fixture
def arena() -> Iterator[Arena]:
    load_kernels()
    made = Arena(WORKERS, 1, trace_events=20_000)
    yield made
    made.close()


def begin(arena: Arena, nodes: int = 0, policy: str = "calibrated") -> None:
    """Set up a search of the middle game, from an empty table."""
    arena.forget()
    for name in ("count", "dropped"):
        arena.trace_logs["head"][name] = 0  # type: ignore[index]  # it was made with room for a trace
    limits = Limits(depth=None if nodes else 9, nodes=nodes or None)
    options = SearchOptions(policy=policy, split_depth=1, join_cost=1)
    write_search(arena, chess.Board(MIDDLE_GAME), limits, options)


def set_high(arena: Arena) -> None:
    """Everything that counts up during a search, after a week."""
    arena.worker["nodes"] = ALL_NODES
    for name in arena.worker["counters"].dtype.names:
        if name != "seldepth":
            arena.worker["counters"][name] = WEEK_CYCLES if name.endswith("cycles") else ALL_NODES
    arena.worker["pruned"] = ALL_NODES
    for name in ("needed_seen", "needed_used", "wasted"):
        arena.worker["outcomes"][name] = ALL_NODES
    arena.header["abort_epoch"] = ALL_NODES
    arena.header["info_count"] = ALL_NODES // INFO_RING * INFO_RING


def run(arena: Arena) -> tuple[int, ...]:
    """Search with interleaved workers: answer, nodes by worker since the beginning, reports, and joins."""
    before = arena.worker["nodes"].copy(), arena.worker["counters"]["joins"].copy()
    first_report = int(arena.header[0]["info_count"])
    assert run_interleaved(arena.context, 7, 200, 10**7) > 0
    assert leftovers(arena) == []
    header = arena.header[0]
    nodes = (arena.worker["nodes"] - before[0]).tolist()
    joins = int((arena.worker["counters"]["joins"] - before[1]).sum())
    assert joins > 10
    return (int(header["best_move"]), int(header["score"]), *nodes, int(header["info_count"]) - first_report, joins)


@pytest.mark.parametrize("policy", ["calibrated", "ybw"])
def test_a_search_with_high_counters_is_the_same(arena: Arena, policy: str) -> None:
    begin(arena, policy=policy)
    fresh = run(arena)
    begin(arena, policy=policy)
    set_high(arena)
    if policy == "ybw":  # calibrated goes by their means
        arena.worker["outcomes"]["move_sizes"] = (ALL_NODES // 1000, ALL_NODES)
    assert run(arena) == fresh
    for name in arena.worker["counters"].dtype.names:
        assert (arena.worker["counters"][name] >= 0).all(), name


def test_a_node_limit_after_a_week(arena: Arena) -> None:
    begin(arena, nodes=20_000)
    fresh = run(arena)
    begin(arena, nodes=WORKERS * ALL_NODES + 20_000)
    arena.worker["nodes"] = ALL_NODES
    assert run(arena) == fresh
    begin(arena, nodes=(1 << 63) - 1)
    arena.worker["nodes"] = ALL_NODES
    run_interleaved(arena.context, 7, 200, 1000)
    checks = arena.worker["next_check"][arena.worker["next_check"] != 0]
    assert len(checks) and (checks > ALL_NODES).all()


def test_numbers_of_open_nodes_in_a_trace_after_a_week(arena: Arena) -> None:
    def numbers() -> np.ndarray:
        logs = arena.trace_logs
        assert logs is not None and not logs["head"]["dropped"].any()
        return np.concatenate([log["events"]["split"][: log["head"]["count"]] for log in logs])

    begin(arena)
    arena.worker["counters"]["opens"] = 1 << 20
    run(arena)
    few = numbers()
    begin(arena)
    arena.worker["counters"]["opens"] = WEEK_NODES
    run(arena)
    assert np.count_nonzero(few) > 100
    moved = (WEEK_NODES - (1 << 20)) << WORKER_BITS
    assert (numbers() == np.where(few != 0, few + moved, 0)).all()


def test_reports_after_a_week() -> None:
    with_one = Arena(1, 1)
    board = chess.Board(MIDDLE_GAME)
    write_search(with_one, board, Limits(depth=5), SearchOptions())
    with_one.header["info_count"] = ALL_NODES // INFO_RING * INFO_RING
    with_one.worker["nodes"] = WEEK_NODES * 1024
    with_one.worker["counters"]["aborted_nodes"] = WEEK_NODES * 512
    reports = Reports(with_one, board, since=0.0)
    reports._ring._read = int(with_one.header[0]["info_count"])
    work_alone(with_one)
    assert {reports.complete(info)[0].depth for info in reports.read()} == {1, 2, 3, 4, 5}
    info = reports.result(False).info
    assert info.nodes > WEEK_NODES * 1024
    assert f" nodes {info.nodes} " in info_line(info)
    assert " aborted 50.0% " in statistics_line(info)
    with_one.close()


def test_the_age_of_table_entries_comes_round(arena: Arena) -> None:
    ages = []
    for _ in range(AGES + 2):
        begin(arena)
        ages.append(int(arena.header[0]["age"]))
    assert ages[AGES:] == ages[:2] and sorted(ages[:AGES]) == list(range(AGES))
