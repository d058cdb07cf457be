"""The benchmark's node count is a fingerprint: the same on every machine, whatever was searched before."""

from __future__ import annotations

import chess
import pytest
from round_robin_entries import step_worker

from psearch import bench
from psearch.arena.arena import Arena
from psearch.arena.setup import write_search
from psearch.bench import BENCH_NODES, BENCH_POSITIONS, run_bench
from psearch.options import SearchOptions
from psearch.results import Limits
from psearch.scheduler.scheduler_entries import load_kernels
from psearch_core.records.pruning_record import MODES

SHALLOW = 5


@pytest.fixture(scope="module", autouse=True)
def kernels() -> None:
    load_kernels()


def test_same_nodes_again_and_after_other_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "BENCH_DEPTH", SHALLOW)
    first, seconds = run_bench()
    assert first > 0 and seconds > 0
    other = Arena(workers=3, hash_mb=1)
    write_search(other, chess.Board(), Limits(depth=9), SearchOptions())
    for turn in range(300):
        step_worker(other.context, turn % 3, 100)
    assert run_bench()[0] == first
    assert run_bench(options=SearchOptions(policy="serial", pruning=MODES["ael"]))[0] != first
    other.close()


def test_node_count() -> None:
    lines: list[str] = []
    nodes, _ = run_bench(lines.append)
    assert nodes == BENCH_NODES
    assert len(lines) == len(BENCH_POSITIONS)
