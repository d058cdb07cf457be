"""The speedup study: figures from made-up searches, and a tiny real run."""

from __future__ import annotations

import math
from dataclasses import replace

import chess
import pytest
from positions import KIWIPETE

from psearch.lab.studies.comparisons import legend, summarise, table
from psearch.lab.studies.speedup_study import Sample, hardware_ceiling, measure
from psearch.results import PsearchError
from psearch.text.epd_text import SuitePosition

SUITE = [SuitePosition("start", chess.Board()), SuitePosition("kiwipete", chess.Board(KIWIPETE))]


def made_up(position: str, threads: int, seconds: float, nodes: int = 1000, repeat: int = 0) -> Sample:
    return Sample(
        position=position,
        fen=position,
        depth=7,
        policy="ybw",
        threads=threads,
        repeat=repeat,
        seconds=seconds,
        nodes=nodes,
        score="+5",
        bestmove="e2e4",
        splits=10 * (threads - 1),
        joins=20 * (threads - 1),
        aborted_nodes=nodes // 10 * (threads - 1),
        idle_share=0.05 * (threads - 1),
    )


def study() -> list[Sample]:
    """Two positions, three repeats, 1 and 2 workers: twice and half as fast again, so the mean is sqrt(3)."""
    samples = []
    for repeat, noise in enumerate((0.9, 1.0, 1.3)):
        samples += [made_up("a", 1, 8.0 * noise, 1000, repeat), made_up("b", 1, 6.0 * noise, 1000, repeat)]
        samples += [made_up("a", 2, 4.0 * noise, 1100, repeat), made_up("b", 2, 4.0 * noise, 1210, repeat)]
    return samples


def test_summary_of_made_up_searches() -> None:
    (row,) = summarise(study())
    assert (row.policy, row.threads, row.positions) == ("ybw", 2, 2)
    assert row.speedup == pytest.approx(math.sqrt(2.0 * 1.5))
    assert row.node_overhead == pytest.approx(math.sqrt(1.1 * 1.21))
    assert row.nps_scaling == pytest.approx(row.speedup * row.node_overhead)
    assert row.idle_share == pytest.approx(0.05)
    assert (row.splits, row.joins) == (10, 20)
    assert row.aborted_share == pytest.approx(231 / 2310)
    assert row.low is not None and row.high is not None
    assert 1.0 < row.low < row.speedup < row.high < 3.0


def test_one_position_has_no_interval() -> None:
    (row,) = summarise([sample for sample in study() if sample.fen == "a"])
    assert (row.positions, row.low, row.high, row.interval) == (1, None, None, "-")
    lines = table([row]).splitlines()
    assert lines[1].split()[:4] == ["ybw", "2", "2.00", "-"]
    assert "one position has none" in legend([row])
    assert "one position has none" not in legend(summarise(study()))


def test_the_interval_of_equal_ratios_is_a_point() -> None:
    samples = [made_up(name, threads, 6.0 / threads) for name in "abcd" for threads in (1, 3)]
    (row,) = summarise(samples)
    assert [row.speedup, row.low, row.high] == pytest.approx([3.0, 3.0, 3.0])


def test_the_interval_is_the_same_every_time() -> None:
    assert summarise(study()) == summarise(study())


def test_more_positions_narrow_the_interval() -> None:
    def width(count: int) -> float:
        samples = []
        for number in range(count):
            samples += [made_up(str(number), 1, 4.0), made_up(str(number), 2, 2.0 + number % 3)]
        (row,) = summarise(samples)
        assert row.low is not None and row.high is not None
        return row.high - row.low

    assert width(60) < width(6)


def test_positions_without_a_base_do_not_count() -> None:
    assert summarise([*study(), made_up("c", 2, 1.0)]) == summarise(study())
    assert summarise([made_up("c", 2, 1.0)]) == []


def test_repeats_count_by_their_geometric_mean() -> None:
    base = [made_up("a", 1, seconds, 1000, repeat) for repeat, seconds in enumerate((1.0, 4.0))]
    (row,) = summarise([*base, made_up("a", 2, 1.0)])
    assert row.speedup == pytest.approx(2.0)


def test_different_depths_cannot_be_compared() -> None:
    with pytest.raises(PsearchError, match="several depths"):
        summarise([made_up("a", 1, 1.0), replace(made_up("a", 2, 1.0), depth=9)])


def test_table_has_the_ceiling_beside_the_speedup() -> None:
    row = replace(summarise(study())[0], low=1.5, high=2.0)
    lines = table([row], {2: 1.9}).splitlines()
    assert lines[0].split()[:5] == ["policy", "workers", "speedup", "95%", "interval"]
    assert "ceiling" in lines[0]
    assert lines[1].split()[:7] == ["ybw", "2", "1.73", "1.50", "-", "2.00", "1.90"]
    assert "ceiling" not in table(summarise(study()))


def test_real_processes() -> None:
    kept: list[Sample] = []
    steps: list[tuple[str, float, float]] = []

    def progress(text: str, done: float = 0, total: float = 0) -> None:
        steps.append((text, done, total))

    samples = measure(SUITE, [2], ["calibrated", "ybw"], 1.0, 2, 1, depth=5, progress=progress, on_sample=kept.append)
    assert samples == kept
    assert [(done, total) for _, done, total in steps] == [(number, 12) for number in range(1, 13)]
    assert len(samples) == 2 * 2 * 3
    assert steps[0][0].startswith("1/2 depth 5 repeat 1/2: 1 x calibrated")
    order = [(sample.threads, sample.policy) for sample in samples]
    assert order == [(1, "calibrated"), (2, "calibrated"), (2, "ybw")] * 4
    for sample in samples:
        assert sample.seconds > 0 and sample.nodes > 0 and sample.depth == 5
        assert chess.Move.from_uci(sample.bestmove) in chess.Board(sample.fen).legal_moves
        assert -0.001 <= sample.idle_share <= 1
        if sample.threads == 1:
            assert (sample.splits, sample.joins, sample.aborted_nodes) == (0, 0, 0)
    one_worker = {(sample.fen, sample.nodes) for sample in samples if sample.threads == 1}
    assert len(one_worker) == 2 * len(SUITE), "one worker has other luck in every repeat"
    rows = summarise(samples)
    assert [(row.policy, row.threads, row.positions) for row in rows] == [("calibrated", 2, 2), ("ybw", 2, 2)]


def test_depth_is_found_from_seconds() -> None:
    (sample,) = measure(SUITE[1:], [1], ["calibrated"], 0.02, 1, 1)
    assert 2 <= sample.depth < 30


def test_a_position_that_is_over_at_once_is_left_out() -> None:
    mate = SuitePosition("mate", chess.Board("7k/5Q2/8/6K1/8/8/8/8 w - - 10 60"))
    samples = measure([mate, SUITE[1]], [1], ["calibrated"], 0.5, 1, 1)
    assert [sample.position for sample in samples] == ["kiwipete"]


def test_hardware_ceiling() -> None:
    assert 0.3 < hardware_ceiling(SUITE, 2, 1, 0.1, 2) < 5
