"""When a study is too small to mean anything."""

from __future__ import annotations

import pytest

from psearch.lab.studies.tree_sizes import NODES_A_WORKER, POSITIONS, warnings


def test_a_large_study_needs_no_warning() -> None:
    assert warnings(POSITIONS, 8 * NODES_A_WORKER, 8, "modern") == []


@pytest.mark.parametrize(
    ("positions", "nodes", "workers", "said"),
    [
        (POSITIONS, 8 * NODES_A_WORKER - 1, 8, ["small trees: 10 k nodes for each of 8 workers. Below 10 k "]),
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
    assert warnings(POSITIONS, 1e9, 2, pruning) == []
    (caution,) = warnings(1, 1e9, 2, pruning)
    assert caution.startswith("few positions: ") and "%" not in caution and "default" not in caution
