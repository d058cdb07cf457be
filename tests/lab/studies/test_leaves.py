"""Least trees and predictions: `psearch predict`, and leaves by formula, by a naive search and by the compiled one."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable

import chess
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from psearch.faces.cli.commands import leaves_command as cli_leaves
from psearch.lab.studies import uniform_tree as uniform
from psearch.lab.studies.prediction_study import ONE_TREE, RULES, RuleReport, bins_of, study
from psearch.lab.studies.uniform_tree import Count, Leaves, count_uniform, least_leaves
from psearch.options import SearchOptions
from psearch.scheduler.scheduler_entries import merge_now
from psearch.simulation.costs import Costs
from psearch.simulation.simulation_entries import VIRTUAL
from psearch.simulation.simulator import Simulator, VirtualSample
from psearch.text.epd_text import SuitePosition
from psearch_core.constants import ALL_NODE, CUT_NODE, PV_NODE
from psearch_core.toolchain.groups import Group

Run = Callable[..., tuple[int, str, str]]

PUBLISHED = {1: (40, 39, 0), 2: (79, 39, 39), 3: (1639, 1599, 39), 4: (3199, 1599, 1599), 5: (65599, 63999, 1599)} | {
    6: (127999, 63999, 63999),
    7: (2623999, 2559999, 63999),
    8: (5119999, 2559999, 2559999),
}
"""breadth 40: total, CUT, ALL by plies (Levin's formula; the literature's 65,569 for 5 plies is a misprint)"""

pytestmark = pytest.mark.usefixtures("search_kernels")


def whole(breadth: int, depth: int, seed: int = 1) -> Count:
    *_, last = count_uniform(breadth, depth, seed)
    return last


@pytest.mark.parametrize("depth", PUBLISHED)
def test_published_figures(depth: int) -> None:
    total, cut, all_ = PUBLISHED[depth]
    row = least_leaves(40, depth)
    assert (row.total, row.pv, row.cut, row.all) == (total, 1, cut, all_)


def test_exact_where_floats_are_not() -> None:
    row = least_leaves(999, 101)
    assert row.total == 999**51 + 999**50 - 1 == row.pv + row.cut + row.all


def test_knuth_s_types_by_enumeration() -> None:
    """The formulas count the nodes of types 1, 2 and 3 as Knuth and Moore define them."""
    for breadth in (1, 2, 3, 5):
        types = Counter({1: 1})
        for depth in range(7):
            row = least_leaves(breadth, depth)
            assert (row.pv, row.cut, row.all) == (types[1], types[2], types[3])
            types = Counter({1: types[1], 2: types[1] * (breadth - 1) + types[3] * breadth, 3: types[2]})


def naive(breadth: int, depth: int, seed: int) -> Counter[str]:
    """Leaves by type, of a recursive alpha-beta over a perfectly ordered tree of its own."""
    found: Counter[str] = Counter()
    dice = random.Random(seed)

    def search(value: int, left: int, alpha: float, beta: float) -> int:
        if not left:
            found["cut" if value >= beta else "all" if value <= alpha else "pv"] += 1
            return value
        best = -(10**9)
        for index in range(breadth):
            child = -value + (dice.randrange(4) if index else 0)
            best = max(best, -search(child, left - 1, -beta, -max(alpha, best)))
            if best >= beta:
                break
        return best

    assert search(0, depth, -(10**9), 10**9) == 0
    return found


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 6), st.integers(0, 6), st.integers(0, 2**63 - 1))
def test_counted_formula_and_naive_search_agree(breadth: int, depth: int, seed: int) -> None:
    row, count, slow = least_leaves(breadth, depth), whole(breadth, depth, seed), naive(breadth, depth, seed)
    assert count.leaves == row
    assert (slow["pv"], slow["cut"], slow["all"]) == (row.pv, row.cut, row.all)
    assert count.misvalued == 0
    # every level's nodes are the leaves of a tree that ends there
    assert count.nodes == sum(least_leaves(breadth, ply).total for ply in range(depth + 1))


@pytest.mark.parametrize(("breadth", "depth"), [(40, 4), (40, 6), (3, 13), (218, 3)])
def test_every_rule_is_right_about_every_node(breadth: int, depth: int) -> None:
    count = whole(breadth, depth)
    assert set(count.wrong.values()) == {0}
    assert count.unlike_knuth["knuth"] == 0
    # the other rules expect CUT of all that a cutoff left out
    assert {count.unlike_knuth[rule] for rule in count.unlike_knuth if rule != "knuth"} == {count.skipped}
    cut_nodes = sum(least_leaves(breadth, ply).cut for ply in range(depth))
    assert count.skipped == cut_nodes * (breadth - 1)


def test_a_wrong_expectation_is_counted() -> None:
    """The root is expected to fail high: then the whole tree is expected to be of other types."""
    levels = np.zeros(4, uniform.level_dtype)
    levels[0]["alpha"] = levels[0]["alpha_at_entry"] = levels[0]["best"] = -uniform.INFINITE
    levels[0]["beta"] = uniform.INFINITE
    levels[0]["expected"] = CUT_NODE
    state = np.zeros(1, uniform.uniform_dtype)
    state["breadth"], state["depth"], state["levels"] = 3, 3, levels.ctypes.data
    assert uniform.search_uniform(state.ctypes.data, 10**6) == 1
    leaves = state["leaves"][0]
    assert [leaves[PV_NODE], leaves[CUT_NODE], leaves[ALL_NODE]] == [1, 8, 2]
    assert state["wrong"][0].min() > 1


def test_in_pieces_as_in_one(monkeypatch: pytest.MonkeyPatch) -> None:
    at_once = whole(5, 6)
    monkeypatch.setattr(uniform, "_NODES_AT_ONCE", 1)
    pieces = list(count_uniform(5, 6))
    assert len(pieces) > 100
    assert pieces[-1] == at_once


def test_table(run: Run) -> None:
    status, out, err = run("leaves", "40", "8")
    assert status == 0
    assert err == ""
    rows = [line.split() for line in out.splitlines()]
    for depth, (total, cut, all_) in PUBLISHED.items():
        assert rows[1 + depth] == [str(depth), f"{total:,}", "1", f"{cut:,}", f"{all_:,}", "same"]
    assert "knuth       every node predicted correctly\n" in out
    assert "garms       every node predicted correctly; " in out
    assert "\n\nLeaves that alpha-beta visits" in out


def test_json(run: Run) -> None:
    status, out, _ = run("leaves", "--json", "--count", "2000", "--seed", "7", "40", "60")
    assert status == 0
    found = json.loads(out)
    assert (found["breadth"], found["seed"]) == (40, 7)
    assert found["leaves"][60]["total"] == 2 * 40**30 - 1
    assert [row["plies"] for row in found["leaves"] if "counted" in row] == [0, 1, 2, 3]
    assert found["leaves"][3]["counted"]["all"] == 39


def test_a_difference_is_reported(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uniform, "least_leaves", lambda breadth, depth: Leaves(depth, 1, 7, 7))
    status, out, err = run("leaves", "40", "1")
    assert status == 1
    assert "NOT THE SAME" in out
    assert err.count("counted") == 2


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("0", "4"), "B: must be a whole number from 1 to 1000"),
        (("40", "-1"), ""),
        (("40", "101"), "N: must be a whole number from 0 to 100"),
        (("40", "4.5"), "N: must be a whole number"),
        (("40",), "required: N"),
        (("40", "4", "5"), "5"),
        (("--count", "x", "40", "4"), "--count"),
    ],
)
def test_bad_input_is_one_line(run: Run, words: tuple[str, ...], reason: str) -> None:
    status, out, err = run("leaves", *words)
    assert status == 2
    assert out == ""
    assert err.count("\n") == 1
    assert reason in err


def test_nothing_is_compiled_for_the_formulas_alone(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli_leaves, "prepare_kernels", lambda: pytest.fail("kernels were loaded"))
    status, out, _ = run("leaves", "--count", "0", "35", "100")
    assert status == 0
    assert len(out.split("\n\n")[0].splitlines()) == 102


POSITIONS = (
    "r1bq1rk1/pp3ppp/2n1pn2/3p4/3P4/2PBPN2/P4PPP/R1BQ1RK1 w - - 0 10",
    "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
)
DEPTH = 8
WORKERS = 4
OTHERS = tuple(rule for rule in RULES if rule != "kannan")


class Searched:
    """The positions, searched in virtual time: what each search was, and what was counted in all of them."""

    def __init__(self, driver: Group, policy: str) -> None:
        self.samples: list[VirtualSample] = []
        self.counted: dict[str, np.ndarray] = {}
        simulator = Simulator(WORKERS, 4, Costs(), driver=driver)
        for fen in POSITIONS:
            self.samples.append(simulator.search("", chess.Board(fen), DEPTH, SearchOptions(policy=policy)))
            merge_now(simulator.arena.context)
            record, outcomes = simulator.arena.header[0]["prediction"], simulator.arena.worker["outcomes"]
            found = {name: record[name] for name in ("all_seen", "all_cut", "bin_seen", "bin_error")}
            found |= {name: outcomes[name].sum(axis=0) for name in ("needed_seen", "needed_used", "wasted")}
            for name, counts in found.items():
                self.counted[name] = self.counted.get(name, 0) + counts.astype(np.int64)
        simulator.close()

    @property
    def tree(self) -> list[tuple[float, int, int, int, int]]:
        """Return figures that are equal for equal trees."""
        return [(one.seconds, one.nodes, one.score, one.joins, one.aborted_nodes) for one in self.samples]

    def by_depth(self, name: str) -> list[int]:
        """Nodes, whatever type they were expected to have and whatever the table knew."""
        return [int(count) for count in self.counted[name][..., 0].sum(axis=(0, 1))]


@pytest.fixture(scope="module")
def reports() -> dict[str, RuleReport]:
    suite = [SuitePosition(fen, chess.Board(fen)) for fen in POSITIONS]
    return {report.rule: report for report in study(suite, DEPTH, workers=WORKERS, hash_mb=4)}


@pytest.fixture(scope="module")
def kannan() -> Searched:
    """An ordinary search of that policy."""
    return Searched(VIRTUAL, "kannan")


@pytest.mark.parametrize("rule", RULES)
def test_all_rules_see_the_tree_that_kannan_opens(kannan: Searched, rule: str) -> None:
    """They see the same nodes, as many of which failed high, and the same moves, as many of which were used."""
    found = Searched(ONE_TREE, rule)
    assert found.tree == kannan.tree
    for name in ("all_seen", "all_cut"):
        assert found.by_depth(name) == kannan.by_depth(name)
    for name in ("needed_seen", "needed_used", "wasted"):
        assert found.counted[name].sum() == kannan.counted[name].sum() > 0
    same = {name: (counts == kannan.counted[name]).all() for name, counts in found.counted.items()}
    assert all(same.values()) == (rule == "kannan"), "what is expected of them differs"


def test_calibrated_is_no_rule_of_its_own(kannan: Searched) -> None:
    found = Searched(ONE_TREE, "calibrated")
    assert found.tree == kannan.tree
    assert all((counts == kannan.counted[name]).all() for name, counts in found.counted.items())


def test_left_to_themselves_rules_open_other_nodes(kannan: Searched) -> None:
    """Otherwise the tests above would prove nothing."""
    assert all(Searched(VIRTUAL, rule).tree != kannan.tree for rule in OTHERS)


def test_reports_are_of_the_same_nodes(reports: dict[str, RuleReport]) -> None:
    assert tuple(reports) == RULES
    for name in ("tree_nodes", "shared_nodes", "used"):
        assert len({getattr(report, name) for report in reports.values()}) == 1
    for counts in (
        {sum(report.nodes.values()) for report in reports.values()},
        {sum(one.count for one in report.needed) for report in reports.values()},
        {sum(one.count for one in report.reliability) for report in reports.values()},
        {sum(one.count for one in report.reliability_later) for report in reports.values()},
        # of the nodes those that failed high, and of the moves those that were used
        {round(sum(one.count * (1 - one.observed) for one in report.reliability)) for report in reports.values()},
        {round(sum(one.count * one.observed for one in report.needed)) for report in reports.values()},
    ):
        assert len(counts) == 1 and counts.pop() > 100
    wasted = [sum(report.wasted.values()) for report in reports.values()]
    assert wasted == pytest.approx([wasted[0]] * len(wasted)) and wasted[0] > 0
    assert len({report.brier_needed for report in reports.values()}) == len(RULES)


def test_the_report_of_kannan_is_that_of_an_ordinary_run(reports: dict[str, RuleReport], kannan: Searched) -> None:
    report, counted = reports["kannan"], kannan.counted
    assert report.shared_nodes == sum(sample.nodes for sample in kannan.samples) / len(POSITIONS)
    assert report.needed == bins_of(counted["needed_seen"], counted["needed_used"])
    assert report.used == counted["needed_used"].sum() / counted["needed_seen"].sum()
    wasted = counted["wasted"] / sum(sample.nodes for sample in kannan.samples)
    assert list(report.wasted.values()) == pytest.approx(wasted.tolist())
