"""Win, draw and loss from a score: what UCI calls WDL, for `info ... wdl` and for blunder marks.

The model is the usual ordered logistic one. With score s in centipawns for the side to move,

    P(win) = 1 / (1 + exp((a - s) / b)),    P(loss) = 1 / (1 + exp((a + s) / b)),    P(draw) = the rest.

a is the score at which half of the games are won, b how slowly certainty grows. Both depend on the material left:
linear interpolation, in the logarithm, between the knots of `wdl_model.py`, which `fit_wdl.py` writes. What the
numbers were fitted on, and what that means for games of this engine, stands there.
"""

from __future__ import annotations

import bisect
import math

import chess
import chess.engine

from psearch.text.wdl_model import DRAW_MARGIN_CP, MATERIAL_KNOTS, SPREAD_CP

Wdl = tuple[int, int, int]
"""Win, draw, loss per mille for the side to move; they add up to 1000."""

_PAWN_UNITS = ((chess.PAWN, 1), (chess.KNIGHT, 3), (chess.BISHOP, 3), (chess.ROOK, 5), (chess.QUEEN, 9))
_LARGEST_EXPONENT = 700.0
"""The exponential of more overflows."""


def material(board: chess.Board) -> int:
    """Return material of both sides in pawn units (1, 3, 3, 5, 9): 78 in the initial position."""
    return sum(
        units * chess.popcount(board.pieces_mask(piece, chess.WHITE) | board.pieces_mask(piece, chess.BLACK))
        for piece, units in _PAWN_UNITS
    )


def _logistic(x: float) -> float:
    return 1 / (1 + math.exp(min(-x, _LARGEST_EXPONENT)))


def probabilities(score_cp: float, pawn_units: int) -> tuple[float, float, float]:
    """Return P(win), P(draw), P(loss) for the side to move. score_cp: its score; pawn_units: `material` of the
    position."""
    units = min(max(pawn_units, MATERIAL_KNOTS[0]), MATERIAL_KNOTS[-1])  # constant beyond the outermost knots
    right = max(1, bisect.bisect_left(MATERIAL_KNOTS, units))
    low, high = MATERIAL_KNOTS[right - 1], MATERIAL_KNOTS[right]
    share = (units - low) / (high - low)
    margin, spread = (
        math.exp((1 - share) * math.log(values[right - 1]) + share * math.log(values[right]))
        for values in (DRAW_MARGIN_CP, SPREAD_CP)
    )
    win = _logistic((score_cp - margin) / spread)
    loss = _logistic((-score_cp - margin) / spread)
    return win, max(0.0, 1 - win - loss), loss


def wdl(score_cp: int, board: chess.Board) -> Wdl:
    """Return win, draw and loss per mille for the side to move, from its score in centipawns.

    `board` is the position that was searched: its material counts. Mate scores of the search (31,744 and more) come
    out as certain.
    """
    win, _, loss = probabilities(score_cp, material(board))
    won, lost = round(1000 * win), round(1000 * loss)
    return won, 1000 - won - lost, lost


def wdl_of_score(score: chess.engine.Score, board: chess.Board) -> Wdl:
    """Return win, draw and loss from python-chess's score, for the side to move: mate counts as won, being mated as
    lost."""
    mate = score.mate()
    if mate is None:
        return wdl(score.score() or 0, board)
    won = mate > 0 or score == chess.engine.MateGiven
    return (1000, 0, 0) if won else (0, 0, 1000)


def pov_wdl(score: chess.engine.PovScore, board: chess.Board) -> chess.engine.PovWdl:
    """Return win, draw and loss in python-chess's type, from the score that a search of `board` gave.

    (`score.wdl()` is python-chess's own: a model of Stockfish's games.)

    >>> import chess, chess.engine, psearch
    >>> psearch.wdl(chess.engine.PovScore(chess.engine.Mate(2), chess.WHITE), chess.Board()).white()
    Wdl(wins=1000, draws=0, losses=0)
    """
    chances = (0, 1000, 0) if board.is_stalemate() else wdl_of_score(score.relative, board)
    return chess.engine.PovWdl(chess.engine.Wdl(*chances), score.turn)


def expected_points(score: chess.engine.Score, board: chess.Board) -> float:
    """Return what the side that has the score gets on average, 0 to 1: wins and half the draws.

    Marks of moves are made of it (`psearch.batch.positions.comparing`), and the bar and the graph of the page.
    """
    return expected_points_with(score, material(board))


def expected_points_with(score: chess.engine.Score, pawn_units: int) -> float:
    """Return `expected_points` in a position of so much `material`."""
    if score.is_mate():
        return float(score == chess.engine.MateGiven or score > chess.engine.Cp(0))
    win, draw, _ = probabilities(score.score() or 0, pawn_units)
    return win + draw / 2
