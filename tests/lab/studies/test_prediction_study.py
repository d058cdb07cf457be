"""`psearch predict`: every rule is judged on the same nodes, and `kannan` on those that it opens itself."""

from __future__ import annotations

import chess
import numpy as np
import pytest

from psearch.lab.studies.prediction_study import ONE_TREE, RULES, RuleReport, bins_of, study
from psearch.options import SearchOptions
from psearch.scheduler.scheduler_entries import merge_now
from psearch.simulation.costs import Costs
from psearch.simulation.simulation_entries import VIRTUAL
from psearch.simulation.simulator import Simulator, VirtualSample
from psearch.text.epd_text import SuitePosition
from psearch_core.toolchain.groups import Group

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
        """What says that two trees are the same."""
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
    """Or the tests above would say nothing."""
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
