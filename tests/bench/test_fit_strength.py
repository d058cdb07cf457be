"""The fit of `UCI_Elo`: it finds ratings that made the games, and refuses what is no match."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from fit_strength import expected_score, fit, interval, main

PAIRS = 400
RATING = 1480.0
OPPONENTS = np.array([1400.0, 1500.0])


def games(seed: int, pairs: int = PAIRS) -> np.ndarray:
    """Pairs of games without draws, against opponents near the rating."""
    dice = np.random.default_rng(seed)
    won = [dice.binomial(2, expected_score(RATING, opponent), pairs) for opponent in OPPONENTS]
    return np.array([[(one == points).sum() for points in (0, 0.5, 1, 1.5, 2)] for one in won])


def test_the_rating_behind_the_games_is_found() -> None:
    assert fit(OPPONENTS, games(1)) == pytest.approx(RATING, abs=25)


def test_intervals_hold_the_truth_and_shrink_with_games() -> None:
    low, high = interval(OPPONENTS, games(2))
    assert low < RATING < high
    wide = interval(OPPONENTS, games(2, PAIRS // 8))
    assert wide[1] - wide[0] > 2 * (high - low)


def test_one_opponent_is_elos_formula() -> None:
    """Three quarters of the points are 191 Elo; the one drawn game more hardly counts."""
    assert fit(np.array([1500.0]), np.array([[0, 0, 500, 0, 500]])) == pytest.approx(1690.8, abs=1)


def test_a_result_without_a_point_has_a_rating() -> None:
    assert 400 < fit(np.array([1350.0]), np.array([[20, 0, 0, 0, 0]])) < 1100


def summary(path: Path, **changes: object) -> Path:
    options = {"UCI_LimitStrength": "true", "UCI_Elo": "1500"}
    sides = {"first": {"options": options}, "second": {"options": {**options, **changes}}}
    path.write_text(json.dumps({"settings": sides, "pairs": [1, 2, 8, 3, 2], "wins": 14, "draws": 5, "losses": 13}))
    return path


def test_the_table_is_of_the_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(summary(tmp_path / "a.json", UCI_Elo="1450"))]) == 0
    table = capsys.readouterr().out
    assert "| 1500 | 1" in table and "1450: +14 =5 -13" in table and "32 games" in table


@pytest.mark.parametrize("changes", [{"UCI_LimitStrength": "false"}, {"UCI_Elo": "many"}])
def test_a_match_at_full_strength_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], changes: dict[str, str]
) -> None:
    assert main([str(summary(tmp_path / "a.json", **changes))]) == 2
    said = capsys.readouterr().err
    assert said.startswith("fit_strength.py: ") and said.count("\n") == 1
