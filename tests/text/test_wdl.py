"""Win, draw and loss: what any such model must obey, and that the fitted one is the one in use."""

from __future__ import annotations

import math

import chess
import chess.engine
import pytest
from hypothesis import given
from hypothesis import strategies as st

from psearch.text.wdl import expected_points, material, probabilities, wdl, wdl_of_score
from psearch.text.wdl_model import DRAW_MARGIN_CP, MATERIAL_KNOTS, SPREAD_CP

START = chess.Board()
ROOK_ENDING = chess.Board("8/5pk1/6p1/7p/7P/6P1/r4PK1/3R4 w - - 0 1")
SCORES = st.integers(-40_000, 40_000)
UNITS = st.integers(0, 150)


def test_material() -> None:
    assert material(START) == 78
    assert material(ROOK_ENDING) == 16
    assert material(chess.Board("4k3/8/8/8/8/8/8/4K3 w - - 0 1")) == 0


@given(SCORES, UNITS)
def test_probabilities(score: int, units: int) -> None:
    win, draw, loss = probabilities(score, units)
    assert min(win, draw, loss) >= 0
    assert math.isclose(win + draw + loss, 1)
    assert probabilities(-score, units) == pytest.approx((loss, draw, win))
    better = probabilities(score + 1, units)
    assert better[0] >= win
    assert better[2] <= loss


@given(SCORES)
def test_per_mille(score: int) -> None:
    for board in (START, ROOK_ENDING):
        found = wdl(score, board)
        assert sum(found) == 1000
        assert min(found) >= 0
        assert wdl(-score, board) == found[::-1]


def test_at_a_knot_the_fitted_numbers_hold() -> None:
    """Half the games are won at the margin; one spread more makes it 73%."""
    for units, margin, spread in zip(MATERIAL_KNOTS, DRAW_MARGIN_CP, SPREAD_CP, strict=True):
        assert probabilities(margin, units)[0] == pytest.approx(0.5)
        assert probabilities(margin + spread, units)[0] == pytest.approx(1 / (1 + math.exp(-1)))
    # between two knots, in the logarithm; beyond the outermost, constant
    middle = (MATERIAL_KNOTS[0] + MATERIAL_KNOTS[1]) / 2
    assert middle.is_integer()
    margin = math.sqrt(DRAW_MARGIN_CP[0] * DRAW_MARGIN_CP[1])
    assert probabilities(margin, int(middle))[0] == pytest.approx(0.5)
    assert probabilities(100, 0) == probabilities(100, MATERIAL_KNOTS[0])
    assert probabilities(100, 150) == probabilities(100, MATERIAL_KNOTS[-1])


def test_the_model_knows_chess() -> None:
    """Facts about games that any sensible fit has."""
    level, ahead = wdl(0, START), wdl(100, START)
    assert level[1] > 400, "a level opening is drawn more often than anything else"
    assert ahead[0] > 2 * ahead[2]
    assert wdl(0, ROOK_ENDING)[1] > level[1], "with less material more is drawn"
    assert wdl(900, chess.Board("8/8/8/8/3k4/8/8/3K3Q w - - 0 1"))[0] > 980
    assert wdl(500, chess.Board("8/8/8/8/3k4/8/8/3K3R w - - 0 1"))[0] > 700


def test_mates_are_certain() -> None:
    for board in (START, ROOK_ENDING):
        assert wdl(31_990, board) == (1000, 0, 0)
        assert wdl_of_score(chess.engine.Mate(3), board) == (1000, 0, 0)
        assert wdl_of_score(chess.engine.Mate(-3), board) == (0, 0, 1000)
        assert wdl_of_score(chess.engine.Mate(0), board) == (0, 0, 1000)
        assert wdl_of_score(chess.engine.MateGiven, board) == (1000, 0, 0)
        assert wdl_of_score(chess.engine.Cp(31), board) == wdl(31, board)
        assert expected_points(chess.engine.Mate(2), board) == 1
        assert expected_points(chess.engine.Mate(-2), board) == 0
        assert expected_points(chess.engine.Cp(0), board) == pytest.approx(0.5)
