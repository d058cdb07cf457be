"""The speedup study: figures, policies compared, pictures, a tiny real run; and the rule that chooses depths."""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from pathlib import Path

import chess
import numpy as np
import pytest
from positions import KIWIPETE

from psearch.arena.arena import Arena
from psearch.arena.setup import perturb_history
from psearch.lab.studies.comparisons import Pair, Row, legend, pair_lines, pairs, summarise, table
from psearch.lab.studies.plots import plot_prediction, plot_simulation, plot_speedup
from psearch.lab.studies.prediction_study import ReliabilityBin, RuleReport
from psearch.lab.studies.speedup_study import Sample, hardware_ceiling, measure
from psearch.lab.studies.tree_sizes import (
    NODES_A_WORKER,
    depth_rule,
    history_seed,
    is_decided,
    nearest_depth,
    rule_name,
    sample_seed,
    survey_seed,
    warnings,
)
from psearch.lab.studies.tree_sizes import POSITIONS as ENOUGH
from psearch.options import SearchOptions
from psearch.results import PsearchError
from psearch.simulation.costs import Costs
from psearch.simulation.simulator import VirtualSample
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
    return [made_up(str(number), 1, 8.0) for number in range(len(next(iter(speedups.values()))))] + [
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
    assert table([row]).splitlines()[1].split()[:4] == ["ybw", "2", "2.00", "-"]
    assert "none for a single position" in legend([row])
    assert "none for a single position" not in legend(summarise(study()))


def test_the_interval_of_equal_ratios_is_a_point() -> None:
    (row,) = summarise([made_up(name, threads, 6.0 / threads) for name in "abcd" for threads in (1, 3)])
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
    lines = table([replace(summarise(study())[0], low=1.5, high=2.0)], {2: 1.9}).splitlines()
    assert lines[0].split()[:5] == ["policy", "workers", "speedup", "95%", "interval"]
    assert "ceiling" in lines[0]
    assert lines[1].split()[:7] == ["ybw", "2", "1.73", "1.50", "-", "2.00", "1.90"]
    assert "ceiling" not in table(summarise(study()))


def test_real_processes() -> None:
    steps: list[tuple[str, float, float]] = []

    def progress(text: str, done: float = 0, total: float = 0) -> None:
        steps.append((text, done, total))

    samples = list(measure(SUITE, [2], ["calibrated", "ybw"], 1.0, 2, 1, depth=6, progress=progress))
    assert [(done, total) for _, done, total in steps] == [(number, 12) for number in range(1, 13)]
    assert len(samples) == 2 * 2 * 3
    assert steps[0][0].startswith("1/2 depth 6 repeat 1/2: 1 x calibrated")
    order = [(sample.threads, sample.policy) for sample in samples]
    assert order == [(1, "calibrated"), (2, "calibrated"), (2, "ybw")] * 4
    for sample in samples:
        assert sample.seconds > 0 and sample.nodes > 0 and sample.depth == 6
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
    assert [sample.position for sample in measure([mate, SUITE[1]], [1], ["calibrated"], 0.5, 1, 1)] == ["kiwipete"]


def test_hardware_ceiling() -> None:
    ceiling = hardware_ceiling(SUITE, 2, 1, 0.1, 2, SearchOptions(policy="serial"))
    assert ceiling is not None and 0.3 < ceiling < 5
    mate = SuitePosition("mate", chess.Board("7k/5Q2/8/6K1/8/8/8/8 w - - 10 60"))
    assert hardware_ceiling([mate], 2, 1, 0.5, 1, SearchOptions(policy="serial")) is None, "it ends before its time"


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


BINS = [ReliabilityBin(100, share / 10, share / 10) for share in range(1, 10)]
REPORT = RuleReport("", 1e5, 2e5, {}, {}, {}, 0.9, 0.2, 0.1, 0.1, BINS, BINS, BINS, 0.1, 0.9, {})
ROW = Row("", 4, 20, 3.0, 2.5, 3.5, 3.8, 1.2, 0.1, 10.0, 20.0, 0.05)


def seen(path: Path, lines: int) -> list[int]:
    """Pixels of each line's colour."""
    from matplotlib.colors import to_rgb
    from matplotlib.image import imread

    picture = imread(path)[:, :, :3]
    return [int((abs(picture - to_rgb(f"C{number}")).max(axis=2) < 0.02).sum()) for number in range(lines)]


def description(path: Path) -> str:
    from matplotlib import image

    with image.PIL.Image.open(path) as picture:  # type: ignore[attr-defined]
        return str(picture.text["Description"])


def test_rules_that_agree_are_all_seen(tmp_path: Path) -> None:
    path = tmp_path / "predict.png"
    rules = ["knuth", "garms", "kannan", "felten", "calibrated"]
    plot_prediction(path, [replace(REPORT, rule=rule) for rule in rules], "all the same")
    pixels = seen(path, len(rules))
    assert min(pixels) > max(pixels) / 3
    assert description(path) == "; ".join(rules)


def test_policies_that_agree_are_all_seen(tmp_path: Path) -> None:
    path = tmp_path / "simulate.png"
    rows = [replace(ROW, policy=policy, threads=count) for policy in ("calibrated", "ybw") for count in (4, 8)]
    plot_simulation(path, rows, "the same")
    pixels = seen(path, 2)
    assert min(pixels) > max(pixels) / 3
    assert description(path) == "calibrated; ybw"


def test_what_keeps_a_picture_from_meaning_much_stands_in_it(tmp_path: Path) -> None:
    from matplotlib import image

    drawn = {
        "simulate": lambda path, notes: plot_simulation(path, [ROW], "a", notes),
        "speedup": lambda path, notes: plot_speedup(path, [], [ROW], {4: 3.9}, "a", notes),
        "predict": lambda path, notes: plot_prediction(path, [replace(REPORT, rule="garms")], "a", notes),
    }
    for name, draw in drawn.items():
        path = tmp_path / f"{name}.png"
        draw(path, [])
        without = path.read_bytes()
        draw(path, ["few positions: two", "small trees"])
        with image.PIL.Image.open(path) as picture:  # type: ignore[attr-defined]
            assert picture.text["Warning"] == "few positions: two; small trees"
        assert path.read_bytes() != without


def test_one_position_is_drawn_without_an_interval(tmp_path: Path) -> None:
    one = replace(ROW, positions=1, low=None, high=None)
    plot_simulation(tmp_path / "simulate.png", [one], "one")
    with_interval, without = tmp_path / "a.png", tmp_path / "b.png"
    for path, row in ((with_interval, ROW), (without, one)):
        plot_speedup(path, [], [row], {4: 3.9}, "one", [])
    assert with_interval.read_bytes() != without.read_bytes()


WANTED = 1e6
POSITIONS = 3000


class Trees:
    """Positions whose iterations have log-normal sizes: what is the position's own, and what is the search's luck."""

    def __init__(self, seed: int) -> None:
        self.dice = np.random.default_rng(seed)
        growth = self.dice.uniform(0.3, 0.8, (POSITIONS, 1))
        first = self.dice.uniform(0, growth)
        self.means = first + growth * np.arange(50) + 0.3 * self.dice.standard_normal((POSITIONS, 50))

    def search(self, speed: float = 1.0) -> np.ndarray:
        """Seconds since the start when each depth is finished, shape (positions, depths)."""
        luck = 0.45 * self.dice.standard_normal(self.means.shape)
        return np.asarray(np.cumsum(np.exp(self.means + luck), axis=1) / speed)


def samples(found: np.ndarray, depths: list[int], threads: int, repeat: int = 0) -> list[VirtualSample]:
    """The searches to these depths, as a study keeps them; positions without a depth are left out."""
    return [
        VirtualSample(
            position=str(number), fen=str(number), depth=depth, policy="ybw", threads=threads, seed=0,
            seconds=float(found[number, depth]), nodes=1 + int(found[number, depth]), score=0, bestmove=0, splits=0,
            joins=0, aborted_nodes=0, idle_share=0.0, repeat=repeat,
        )
        for number, depth in enumerate(depths)
        if depth > 0
    ]  # fmt: skip


def chosen(found: np.ndarray) -> list[int]:
    return [nearest_depth(dict(enumerate(row)), WANTED) or 0 for row in found]


def measured(survey_is_base: bool, speed: float) -> Row:
    """Return what a study finds of workers that are this much faster."""
    trees = Trees(seed=1)
    base, many = trees.search(), trees.search(speed)
    depths = chosen(base if survey_is_base else trees.search())
    return summarise([*samples(many, depths, 8), *samples(base, depths, 1)])[0]


@pytest.mark.parametrize("speed", [1.0, 20.0])
@pytest.mark.parametrize("survey_is_base", [False, True])
def test_nearest_is_unbiased(survey_is_base: bool, speed: float) -> None:
    """A separate survey is unbiased, and so is the base itself, whose nearest tree is as often lucky as unlucky."""
    row = measured(survey_is_base, speed)
    assert row.positions > 0.95 * POSITIONS
    assert row.low is not None and row.high is not None and math.log(row.high / row.low) / 2 < 0.03
    assert row.speedup == pytest.approx(speed, rel=0.02)


def test_repeats_are_worth_more_positions() -> None:
    trees = Trees(seed=2)
    depths = chosen(trees.search())
    widths = []
    for repeats in (1, 4):
        sides = []
        for threads in (1, 8):
            sides.append([s for repeat in range(repeats) for s in samples(trees.search(), depths, threads, repeat)])
        (row,) = summarise([*sides[0], *sides[1]])
        assert row.low is not None and row.high is not None and row.low <= 1.0 <= row.high
        widths.append(math.log(row.high / row.low))
    assert widths[1] == pytest.approx(widths[0] / 2, rel=0.1)


def test_nearest_counts_by_ratio() -> None:
    assert nearest_depth({5: 499.0, 6: 2000.0}, 1000.0) == 6
    assert nearest_depth({5: 501.0, 6: 2000.0}, 1000.0) == 5
    assert nearest_depth({5: 1000.0}, 1000.0) == 5
    assert nearest_depth({1: 900.0, 2: 900.0}, 1000.0) == 2, "reports that came together"
    assert nearest_depth({}, 1000.0) is None
    assert nearest_depth({1: 3.0, 99: 49.0}, 1000.0) is None, "it is over at once"
    assert nearest_depth({1: 3.0, 100: 900.0}, 1000.0) is None, "it ends in a mate or draw"


def test_what_is_left_out_is_told() -> None:
    assert depth_rule({"about": {"depths": "nearest"}, "left_out": []}) == depth_rule({"about": {"depths": "nearest"}})
    told = depth_rule({"about": {"depths": rule_name(None)}, "left_out": ["WAC.001", "WAC.004"]})
    assert told.endswith("\nleft out, solved before that size: WAC.001, WAC.004")
    assert depth_rule({"left_out": [str(n) for n in range(50)]}).endswith("10, 11, and 38 more")


def test_the_next_depth_is_not_waited_for_when_it_cannot_be_the_nearest() -> None:
    sizes = {5: 250.0}
    assert not is_decided(sizes, 3999.0, 1000.0) and is_decided(sizes, 4000.0, 1000.0)
    assert nearest_depth({**sizes, 6: 3999.0}, 1000.0) == 6 and nearest_depth({**sizes, 6: 4001.0}, 1000.0) == 5
    assert is_decided({5: 250.0, 6: 1000.0}, 1000.0, 1000.0)
    assert not is_decided({}, 10**9, 1000.0)


def test_every_search_has_luck_of_its_own() -> None:
    seeds = [survey_seed(seed, fen) for seed in (0, 1) for fen in "ab"]
    seeds += [
        sample_seed(seed, fen, policy, workers, repeat)
        for seed in (0, 1) for fen in "ab" for policy in ("ybw", "lazy") for workers in (2, 8) for repeat in range(3)
    ]  # fmt: skip
    seeds += [sample_seed(seed, fen, "serial", 1, repeat) for seed in (0, 1) for fen in "ab" for repeat in range(3)]
    assert len(set(seeds)) == len(seeds) and all(0 < seed < 2**63 for seed in seeds)
    assert sample_seed(0, "a", "serial", 1, 0) == sample_seed(0, "a", "calibrated", 1, 0), "policies share the base"


def test_a_perturbed_history_is_small_and_the_same_again() -> None:
    arena = Arena(workers=1, hash_mb=1)
    quiet = arena.header[0]["learning"]["quiet"]
    found = []
    for seed in (history_seed("a"), history_seed("b"), history_seed("a")):
        arena.forget()
        perturb_history(arena, seed)
        found.append(quiet.copy())
    assert (found[0] == found[2]).all() and (found[0] != found[1]).mean() > 0.9
    assert found[0].min() == -32 and found[0].max() == 32 and abs(found[0].mean()) < 1
    arena.close()


@pytest.mark.parametrize(
    ("about", "said"),
    [
        ({"depths": rule_name(None), "arguments": {"tree_nodes": 5}}, "nearest by a separate search"),
        ({"depths": rule_name(9), "arguments": {"depth": 9}}, "the same for all; random histories"),
        ({"arguments": {"depth": None, "tree_nodes": 700_000}}, "speedups are too small"),
        ({"arguments": {"depth": None, "seconds": 5.0}}, "speedups are too large"),
        ({"arguments": {"depth": 9, "seconds": 5.0}}, "the same for all; empty histories"),
        ({"tree_nodes": 5}, "speedups are too small"),
        ({"commit": "abc"}, "does not say"),
        ([], "does not say"),
        (None, "does not say"),
    ],
)
def test_a_log_says_by_which_rule_its_depths_were_chosen(about: object, said: str) -> None:
    assert said in depth_rule({"about": about} if about is not None else {})


# When a study is too small to mean anything


def test_a_large_study_needs_no_warning() -> None:
    assert warnings(ENOUGH, 8 * NODES_A_WORKER, 8, "modern") == []


@pytest.mark.parametrize(
    ("positions", "nodes", "workers", "said"),
    [
        (ENOUGH, 8 * NODES_A_WORKER - 1, 8, ["small trees: 10 k nodes for each of 8 workers. Below 10 k "]),
        (3, 100_000, 8, ["few positions: "]),
        (3, 7_000, 8, ["small trees: 875 nodes for each of 8 workers", "few positions: "]),
        (100, 500, 1, []),
    ],
)
def test_warnings(positions: int, nodes: float, workers: int, said: list[str]) -> None:
    found = warnings(positions, nodes, workers, "modern")
    assert len(found) == len(said)
    assert all(line.startswith(start) and len(line) < 160 for line, start in zip(found, said, strict=True))


def test_a_mean_of_few_is_less_certain() -> None:
    shares = [
        int(warnings(positions, 1e9, 2, "modern,lmr=0")[0].rsplit("about ", 1)[1].rstrip("%"))
        for positions in (1, 3, 11)
    ]
    assert shares == sorted(shares, reverse=True) and shares[-1] > 25


@pytest.mark.parametrize("pruning", ["", "plain", "sound"])
def test_other_searches_are_not_said_to_be_as_uncertain_as_the_default_of_chess(pruning: str) -> None:
    """Games of the user's, and chess without selective search: nobody has measured how far their positions differ."""
    assert warnings(ENOUGH, 1e9, 2, pruning) == []
    (caution,) = warnings(1, 1e9, 2, pruning)
    assert caution.startswith("few positions: ") and "%" not in caution and "default" not in caution
