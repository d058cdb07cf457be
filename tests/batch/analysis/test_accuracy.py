"""Accuracy and average loss: numbers worked out by hand, properties, and lichess's windows written out."""

from __future__ import annotations

import itertools
import statistics

import chess
import chess.engine
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from psearch.batch.analysis.games import JudgedMove, _volatilities, capped_cp, move_accuracy, summarise, win_percent

CP = st.integers(-1000, 1000)
PERCENT = st.floats(0, 100)


def move(mover: chess.Color, before: int, after: int, is_best: bool = False, mark: str | None = None) -> JudgedMove:
    """A move between two positions with these scores, seen from White."""
    one, other = (chess.engine.PovScore(chess.engine.Cp(cp), chess.WHITE) for cp in (before, after))
    return JudgedMove(mover, one, other, is_best, 0.0, mark=mark)


def game(*scores: int, best: tuple[int, ...] = (), turn: chess.Color = chess.WHITE) -> list[JudgedMove]:
    """The moves between positions with these scores, seen from White; best: numbers of the search's own moves."""
    return [
        move(turn if number % 2 == 0 else not turn, before, after, number in best)
        for number, (before, after) in enumerate(itertools.pairwise(scores))
    ]


def test_chances() -> None:
    """exp(-0.368208) is 0.69197, and 100 / 1.69197 is 59.10."""
    assert win_percent(100) == pytest.approx(59.1028, abs=1e-3)
    assert win_percent(-100) == pytest.approx(40.8972, abs=1e-3)
    assert win_percent(0) == 50


def test_accuracy_of_moves() -> None:
    """A loss of 9.1028%: exp(-0.39637) is 0.67276, times 103.1668 is 69.406, and 2.1669 less."""
    assert move_accuracy(59.1028, 50) == pytest.approx(67.239, abs=1e-2)
    assert move_accuracy(59.1028, 40.8972) == pytest.approx(44.527, abs=1e-2)
    assert move_accuracy(100, 0) == 0
    assert move_accuracy(50, 50) == move_accuracy(10, 90) == 100


def test_a_game_worked_out_by_hand() -> None:
    """White loses nothing, Black 100 centipawns, White 200. White's weights are 0.5, the least, and 9.1028, so that the
    weighted mean is 47.415; the harmonic mean of 100 and 44.527 is 61.617."""
    found = summarise(game(0, 0, 100, -100))
    white, black = found[chess.WHITE], found[chess.BLACK]
    assert (white.moves, white.average_loss) == (2, 100)
    assert white.accuracy == pytest.approx((47.415 + 61.617) / 2, abs=1e-2)
    assert (black.moves, black.average_loss) == (1, 100)
    assert black.accuracy == pytest.approx(67.239, abs=1e-2)


def test_marks_are_counted_for_each_player() -> None:
    moves = [move(number % 2 == 0, 0, 0, mark=mark) for number, mark in enumerate(["??", None, "?!", "?!", "??"])]
    found = summarise(moves)
    assert found[chess.WHITE].marks == {"??": 2, "?!": 1}
    assert found[chess.BLACK].marks == {"?!": 1}


def test_the_move_of_the_search_loses_nothing() -> None:
    white = summarise(game(0, -300, best=(0,)))[chess.WHITE]
    assert (white.accuracy, white.average_loss) == (100, 0)


def test_nobody_moved() -> None:
    for found in (summarise([])[chess.WHITE], summarise(game(0, 10))[chess.BLACK]):
        assert (found.moves, found.accuracy, found.average_loss) == (0, None, None)


@pytest.mark.parametrize(
    ("score", "cp"),
    [
        (chess.engine.Cp(37), 37),
        (chess.engine.Cp(-1500), -1000),
        (chess.engine.Mate(40), 1000),
        (chess.engine.Mate(-1), -1000),
        (chess.engine.Mate(0), -1000),
        (chess.engine.MateGiven, 1000),
    ],
)
def test_scores_have_a_cap(score: chess.engine.Score, cp: int) -> None:
    assert capped_cp(score) == cp


@settings(deadline=None)
@given(CP, CP)
def test_a_better_score_is_a_better_chance(one: int, other: int) -> None:
    assert 0 <= win_percent(one) <= 100
    assert (one < other) == (win_percent(one) < win_percent(other))
    assert win_percent(one) + win_percent(-one) == pytest.approx(100)


@settings(deadline=None)
@given(PERCENT, PERCENT, PERCENT)
def test_a_greater_loss_is_never_more_accurate(before: float, one: float, other: float) -> None:
    assert 0 <= move_accuracy(before, one) <= 100
    assert move_accuracy(before, min(one, other)) <= move_accuracy(before, max(one, other))


@settings(deadline=None)
@given(st.lists(CP, min_size=2, max_size=200), st.booleans())
def test_players_stay_within_bounds_and_colours_are_alike(scores: list[int], turn: bool) -> None:
    found = summarise(game(*scores, turn=turn))
    for player in found.values():
        assert player.accuracy is None or 0 <= player.accuracy <= 100
        assert player.average_loss is None or 0 <= player.average_loss <= 2000
    mirrored = summarise(game(*(-score for score in scores), turn=not turn))
    for color in chess.COLORS:
        assert mirrored[not color].average_loss == found[color].average_loss
        assert mirrored[not color].accuracy == pytest.approx(found[color].accuracy)


@settings(deadline=None)
@given(st.lists(CP, min_size=2, max_size=120))
def test_weights_are_those_of_the_windows_written_out(scores: list[int]) -> None:
    """The first window as often as whole windows are missing at the start, then every window."""
    chances = [win_percent(score) for score in scores]
    size = min(len(chances), max(2, min(8, (len(scores) - 1) // 10)))
    windows = [chances[:size]] * (size - 2)
    windows += [chances[begin : begin + size] for begin in range(len(chances) - size + 1)]
    naive = [max(0.5, min(12, statistics.pstdev(window))) for window in windows]
    assert _volatilities(game(*scores)) == pytest.approx(naive)
