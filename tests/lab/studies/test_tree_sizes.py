"""The rule that chooses depths, on made-up trees of known luck: it must not favour any worker count."""

from __future__ import annotations

import math

import numpy as np
import pytest

from psearch.arena.arena import Arena
from psearch.arena.setup import perturb_history
from psearch.lab.studies.comparisons import Row, summarise
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
from psearch.simulation.simulator import VirtualSample

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
    """The depth of each position, of these searches."""
    return [nearest_depth(dict(enumerate(row)), WANTED) or 0 for row in found]


def measured(survey_is_base: bool, speed: float) -> Row:
    """What a study finds of workers that are so much faster."""
    trees = Trees(seed=1)
    base, many = trees.search(), trees.search(speed)
    depths = chosen(base if survey_is_base else trees.search())
    return summarise([*samples(many, depths, 8), *samples(base, depths, 1)])[0]


@pytest.mark.parametrize("speed", [1.0, 20.0])
@pytest.mark.parametrize("survey_is_base", [False, True])
def test_nearest_is_unbiased(survey_is_base: bool, speed: float) -> None:
    """By a search apart; and even by the base itself, for what is nearest is as often lucky as unlucky."""
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
    assert told.endswith("\nleft out, ended by a mate or draw: WAC.001, WAC.004")
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
