"""The fit of `UCI_Elo`: it finds ratings that made the games, and refuses what is no match."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from fit_strength import Played, expected_score, fit, intervals, main

PAIRS = 200
RATINGS = {1200: 1100.0, 1500: 1480.0, 1800: 1900.0}
STEEPNESS = 1.4


def games(seed: int) -> list[Played]:
    """Pairs of games without draws, between levels of known ratings and opponents near them."""
    dice = np.random.default_rng(seed)
    matches = []
    for level, rating in RATINGS.items():
        for opponent in (level - 100, level + 100):
            score = expected_score(rating, opponent, STEEPNESS)
            won = dice.binomial(2, score, PAIRS)
            pairs = tuple(int((won == points).sum()) for points in (0, 0.5, 1, 1.5, 2))
            matches.append(Played(level, opponent, pairs, int(won.sum()), 0, int((2 - won).sum())))
    return matches


def test_the_ratings_behind_the_games_are_found() -> None:
    matches = games(1)
    found, steepness = fit(matches, np.array([match.pairs for match in matches]))
    assert steepness == pytest.approx(STEEPNESS, rel=0.25)
    for level, rating in RATINGS.items():
        assert found[level] == pytest.approx(rating, abs=45)


def test_intervals_hold_the_truth_and_shrink_with_games() -> None:
    matches = games(2)
    ends = intervals(matches, rounds=60)
    fewer = [Played(m.level, m.opponent, tuple(n // 8 for n in m.pairs), 0, 0, 0) for m in matches]
    wide = intervals(fewer, rounds=60)
    for level, rating in RATINGS.items():
        low, high = ends[level]
        assert low - 20 < rating < high + 20
        assert wide[level][1] - wide[level][0] > 1.5 * (high - low)


def test_a_result_without_a_point_has_a_rating() -> None:
    match = Played(1200, 1350, (20, 0, 0, 0, 0), 0, 0, 40)
    found, _ = fit([match], np.array([match.pairs]))
    assert 400 < found[1200] < 1100


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
