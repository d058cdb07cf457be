"""The leaves of the least tree: by formula, by a naive search, and by the compiled one that asks the rules."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from psearch.faces.cli.commands import leaves_command as cli_leaves
from psearch.lab.studies import uniform_tree as uniform
from psearch.lab.studies.uniform_tree import Count, Leaves, count_uniform, least_leaves
from psearch.scheduler.scheduler_entries import load_kernels
from psearch_core.constants import ALL_NODE, CUT_NODE, PV_NODE

Run = Callable[..., tuple[int, str, str]]

PUBLISHED = {1: (40, 39, 0), 2: (79, 39, 39), 3: (1639, 1599, 39), 4: (3199, 1599, 1599), 5: (65599, 63999, 1599)} | {
    6: (127999, 63999, 63999),
    7: (2623999, 2559999, 63999),
    8: (5119999, 2559999, 2559999),
}
"""breadth 40: total, CUT, ALL by plies (Levin's formula; the literature's 65,569 for 5 plies is a misprint)"""


@pytest.fixture(scope="module", autouse=True)
def kernels() -> None:
    load_kernels()


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
    """As if the root were expected to fail high: then the whole tree is expected to be of other types."""
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
    counted = [row["plies"] for row in found["leaves"] if "counted" in row]
    assert counted == [0, 1, 2, 3]
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
