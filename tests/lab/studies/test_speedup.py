"""The speedup study: figures from made-up searches, policies compared position by position, a tiny real run."""

from __future__ import annotations

import math
from dataclasses import asdict, replace

import chess
import pytest
from positions import KIWIPETE

from psearch.lab.studies.comparisons import Pair, legend, pair_lines, pairs, summarise, table
from psearch.lab.studies.speedup_study import Sample, hardware_ceiling, measure
from psearch.results import PsearchError
from psearch.simulation.costs import Costs
from psearch.text.epd_text import SuitePosition

SUITE = [SuitePosition("start", chess.Board()), SuitePosition("kiwipete", chess.Board(KIWIPETE))]


def made_up(position: str, threads: int, seconds: float, nodes: int = 1000, repeat: int = 0) -> Sample:
    helpers = threads - 1
    what = (position, position, 7, "ybw", threads, repeat, seconds, nodes, "+5", "e2e4")
    return Sample(*what, 10 * helpers, 20 * helpers, nodes // 10 * helpers, 0.05 * helpers)


def study() -> list[Sample]:
    """Two positions, three repeats, 1 and 2 workers: twice and half as fast again, so the mean is sqrt(3)."""
    samples = []
    for repeat, noise in enumerate((0.9, 1.0, 1.3)):
        samples += [made_up("a", 1, 8.0 * noise, 1000, repeat), made_up("b", 1, 6.0 * noise, 1000, repeat)]
        samples += [made_up("a", 2, 4.0 * noise, 1100, repeat), made_up("b", 2, 4.0 * noise, 1210, repeat)]
    return samples


def two_policies(speedups: dict[str, list[float]]) -> list[Sample]:
    """One worker and eight, on a tree for each of the speedups; by policy."""
    alone = [made_up(str(number), 1, 8.0) for number in range(len(next(iter(speedups.values()))))]
    return alone + [
        replace(made_up(str(number), 8, 8.0 / speedup), policy=policy)
        for policy, values in speedups.items()
        for number, speedup in enumerate(values)
    ]


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
    assert [row] == summarise(study()), "the interval is the same every time"


def test_one_position_has_no_interval() -> None:
    (row,) = summarise([sample for sample in study() if sample.fen == "a"])
    assert (row.positions, row.low, row.high, row.interval) == (1, None, None, "-")
    lines = table([row]).splitlines()
    assert lines[1].split()[:4] == ["ybw", "2", "2.00", "-"]
    assert "none for a single position" in legend([row])
    assert "none for a single position" not in legend(summarise(study()))


def test_the_interval_of_equal_ratios_is_a_point() -> None:
    samples = [made_up(name, threads, 6.0 / threads) for name in "abcd" for threads in (1, 3)]
    (row,) = summarise(samples)
    assert [row.speedup, row.low, row.high] == pytest.approx([3.0, 3.0, 3.0])


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


def test_pairs_are_surer_than_the_intervals_of_the_table() -> None:
    """One policy is a tenth faster on every position, however much the positions differ."""
    values = [1.0, 3.0, 7.0]
    found = pairs(two_policies({"ybw": values, "garms": [1.1 * value for value in values]}))
    assert list(found) == [(8, "garms", "ybw")]
    assert found[8, "garms", "ybw"] == pytest.approx(Pair(3, 1.1, 1.1, 1.1))
    text = pair_lines(two_policies({"ybw": values, "garms": [1.1 * value for value in values]}))
    assert text.endswith("\n  8 workers, garms over ybw: x1.100 (1.100 to 1.100), 3 positions")


def test_nothing_is_compared_with_one_policy_or_one_position() -> None:
    assert pair_lines(two_policies({"ybw": [2.0, 3.0]})) == ""
    assert pair_lines(two_policies({"ybw": [2.0], "garms": [3.0]})) == ""


def test_costs_say_whose_they_are() -> None:
    mine = replace(Costs(), node=255.0, machine="a board, 4 cores", measured="2026-01-02")
    assert Costs().origin("a board, 4 cores").startswith("costs: the defaults (2-core EPYC virtual machine, 20")
    assert "calibrate.py" in replace(Costs(), jitter=0.5).origin("")
    assert mine.origin("a board, 4 cores", "my.json") == "costs: my.json (this machine, 2026-01-02)"
    assert mine.origin("another") == "costs: those of the log (a board, 4 cores, 2026-01-02)"
    assert Costs.of(asdict(mine)) == mine
    with pytest.raises(ValueError, match="unknown fields"):
        Costs.of(None)
