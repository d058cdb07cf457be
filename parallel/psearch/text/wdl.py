"""Chances to win, draw and lose from a score (WDL in UCI), for `info ... wdl` and for the marks of moves.

The model is the usual ordered logistic one. With score s in centipawns for the side to move,

    P(win) = 1 / (1 + exp((a - s) / b)),    P(loss) = 1 / (1 + exp((a + s) / b)),    P(draw) = the rest.

a is the score at which half of the games are won, b is the scale of the curves. Both depend on the remaining material,
by linear interpolation of their logarithms between the knots of `wdl_model.py`, which `fit_wdl.py` writes. That module
also says what the parameters were fitted on.
"""

from __future__ import annotations

import bisect
import math

import chess
import chess.engine

from psearch.text.wdl_model import DRAW_MARGIN_CP, MATERIAL_KNOTS, SPREAD_CP

Wdl = tuple[int, int, int]
"""Win, draw and loss per mille for the side to move; they add up to 1000."""

_PAWN_UNITS = ((chess.PAWN, 1), (chess.KNIGHT, 3), (chess.BISHOP, 3), (chess.ROOK, 5), (chess.QUEEN, 9))
_LARGEST_EXPONENT = 700.0
"""Largest exponent whose exponential does not overflow."""


def material(board: chess.Board) -> int:
    """Return the material of both sides in pawn units (1, 3, 3, 5, 9): 78 in the initial position."""
    return sum(
        units * chess.popcount(board.pieces_mask(piece, chess.WHITE) | board.pieces_mask(piece, chess.BLACK))
        for piece, units in _PAWN_UNITS
    )


def _logistic(x: float) -> float:
    return 1 / (1 + math.exp(min(-x, _LARGEST_EXPONENT)))


def probabilities(score_cp: float, pawn_units: int) -> tuple[float, float, float]:
    """Return P(win), P(draw) and P(loss) for the side to move. score_cp: its score; pawn_units: the position's
    `material`."""
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
    """Return win, draw and loss per mille for the side to move, from its score in centipawns. `board` is the position
    that was searched: its material counts. Mate scores of the search (31,744 and more) are certain."""
    win, _, loss = probabilities(score_cp, material(board))
    won, lost = round(1000 * win), round(1000 * loss)
    return won, 1000 - won - lost, lost


def wdl_of_score(score: chess.engine.Score, board: chess.Board) -> Wdl:
    """Return win, draw and loss per mille for a score of python-chess; a mate is a certain win or loss."""
    mate = score.mate()
    if mate is None:
        return wdl(score.score() or 0, board)
    won = mate > 0 or score == chess.engine.MateGiven
    return (1000, 0, 0) if won else (0, 0, 1000)


def pov_wdl(score: chess.engine.PovScore, board: chess.Board) -> chess.engine.PovWdl:
    """Return the chances to win, draw and lose, from the score of a search of `board`, by psearch's own model.

    (python-chess's `score.wdl()` uses a model of Stockfish's games.)

    >>> import chess, chess.engine, psearch
    >>> psearch.wdl(chess.engine.PovScore(chess.engine.Mate(2), chess.WHITE), chess.Board()).white()
    Wdl(wins=1000, draws=0, losses=0)
    """
    chances = (0, 1000, 0) if board.is_stalemate() else wdl_of_score(score.relative, board)
    return chess.engine.PovWdl(chess.engine.Wdl(*chances), score.turn)


def expected_points(score: chess.engine.Score, board: chess.Board) -> float:
    """Return the expected points of the side with this score, 0 to 1: wins and half the draws."""
    if score.is_mate():
        return float(score == chess.engine.MateGiven or score > chess.engine.Cp(0))
    win, draw, _ = probabilities(score.score() or 0, material(board))
    return win + draw / 2
