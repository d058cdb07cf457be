"""Policies compared position by position, and whose costs virtual time charged."""

from __future__ import annotations

from dataclasses import asdict, replace

import pytest

from psearch.lab.studies.comparisons import Pair, pair_lines, pairs
from psearch.simulation.costs import Costs
from psearch.simulation.simulator import VirtualSample

BASE = VirtualSample("", "", 8, "serial", 1, 0, 8.0, 1000, 0, 0, 1, 1, 0, 0.0)


def samples(speedups: dict[str, list[float]]) -> list[VirtualSample]:
    """One worker and eight, on a tree for each of the speedups; by policy."""
    alone = [replace(BASE, fen=str(number)) for number in range(len(next(iter(speedups.values()))))]
    return alone + [
        replace(BASE, fen=str(number), policy=policy, threads=8, seconds=8.0 / speedup)
        for policy, values in speedups.items()
        for number, speedup in enumerate(values)
    ]


def test_pairs_are_surer_than_the_intervals_of_the_table() -> None:
    """One policy is a tenth faster on every position, however much the positions differ."""
    values = [1.0, 3.0, 7.0]
    found = pairs(samples({"ybw": values, "garms": [1.1 * value for value in values]}))
    assert list(found) == [(8, "garms", "ybw")]
    assert found[8, "garms", "ybw"] == pytest.approx(Pair(3, 1.1, 1.1, 1.1))
    text = pair_lines(samples({"ybw": values, "garms": [1.1 * value for value in values]}))
    assert text.endswith("\n  8 workers, garms over ybw: x1.100 (1.100 to 1.100), 3 positions")


def test_nothing_is_compared_with_one_policy_or_one_position() -> None:
    assert pair_lines(samples({"ybw": [2.0, 3.0]})) == ""
    assert pair_lines(samples({"ybw": [2.0], "garms": [3.0]})) == ""


def test_costs_say_whose_they_are() -> None:
    mine = replace(Costs(), node=255.0, machine="a board, 4 cores", measured="2026-01-02")
    assert Costs().told("a board, 4 cores").startswith("costs: the defaults (2-core EPYC virtual machine, 20")
    assert "calibrate.py" in replace(Costs(), jitter=0.5).told("")
    assert mine.told("a board, 4 cores", "my.json") == "costs: my.json (this machine, 2026-01-02)"
    assert mine.told("another") == "costs: those of the log (a board, 4 cores, 2026-01-02)"
    assert Costs.of(asdict(mine)) == mine
    with pytest.raises(ValueError, match="unknown fields"):
        Costs.of(None)
