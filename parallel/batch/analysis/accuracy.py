"""How well each side played a game: accuracy, average centipawn loss, and counts of marks, as lichess.org gives them.

From scores of the positions a chance to win is made, from what a move took from it the accuracy of the move, from those
the accuracy of the player. The formulas and their constants are those that lichess.org explains on
https://lichess.org/page/accuracy and uses in `WinPercent.scala`, `AccuracyPercent.scala` and `AccuracyCP.scala` of
https://github.com/lichess-org/lila; the code is our own.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import chess
import chess.engine
import numpy as np

_CHANCE_PER_CP = 0.00368208
"""slope of the logistic curve that lichess fitted to games of players of 2300"""
_CAP_CP = 1_000
"""scores beyond that, and mates, count as that much"""
_CURVE = (103.1668100711649, -0.04354415386753951, -3.166924740191411)
"""accuracy = a * exp(b * loss) + c, with the loss in percent of the chance to win"""
_UNCERTAINTY_BONUS = 1.0
"""percent, for each move that lost something: analysis errs, too"""
_WINDOW_SHARE = 10
"""A window is the number of moves over this, within `_WINDOW_PLIES`."""
_WINDOW_PLIES = (2, 8)
_WEIGHTS = (0.5, 12.0)
"""least and largest weight of a move: the standard deviation, in percent, of the chances around it"""
_LEAST_IN_HARMONIC_MEAN = 1.0
"""percent: one move must not decide everything"""


@dataclass(frozen=True)
class ScoredMove:
    """A move of a game between two positions with scores."""

    mover: chess.Color
    before_cp: int
    after_cp: int
    """centipawns seen from White, as `capped_cp` gives them"""
    is_best: bool = False
    """the search would have played it: it loses nothing, whatever the two searches say"""
    mark: str | None = None
    """?!, ? or ??"""
    compared_cp: tuple[int, int] | None = None
    """the scores of the best move and of this one, seen from White as well, where they were compared: by these it is
    judged"""

    @property
    def _best_and_played_cp(self) -> tuple[int, int]:
        return self.compared_cp or (self.before_cp, self.after_cp)

    @property
    def loss_cp(self) -> int:
        """Centipawns that the mover lost, at least 0."""
        best, played = self._best_and_played_cp
        lost = best - played if self.mover else played - best
        return 0 if self.is_best else max(0, lost)

    @property
    def accuracy(self) -> float:
        """0 to 100."""
        if self.is_best:
            return 100.0
        before, after = (win_percent(cp) for cp in self._best_and_played_cp)
        return move_accuracy(before, after) if self.mover else move_accuracy(100 - before, 100 - after)


@dataclass(frozen=True)
class PlayerSummary:
    """How one side played one game."""

    moves: int
    """those that were judged"""
    accuracy: float | None
    """percent; None without a move"""
    average_loss: float | None
    """centipawns; None without a move"""
    marks: Mapping[str, int]
    """how many moves got ?!, ?, ??; a mark that none got is not there"""


def capped_cp(score: chess.engine.Score) -> int:
    """Return centipawns from -1000 to 1000; a mate counts as the end of that range."""
    return max(-_CAP_CP, min(_CAP_CP, score.score(mate_score=1_000_000)))


def win_percent(cp: float) -> float:
    """Return the chance to win, 0 to 100, of the side that has a score in centipawns.

    >>> win_percent(0), round(win_percent(100), 1), round(win_percent(-1000), 1)
    (50.0, 59.1, 2.5)
    """
    return 50 + 50 * (2 / (1 + math.exp(-_CHANCE_PER_CP * cp)) - 1)


def move_accuracy(before: float, after: float) -> float:
    """Return the accuracy of a move, 0 to 100, from the mover's chances before and after it in percent.

    >>> move_accuracy(50, 55), round(move_accuracy(50, 40), 1)
    (100.0, 64.6)
    """
    if after >= before:
        return 100.0
    factor, rate, offset = _CURVE
    return max(0.0, min(100.0, factor * math.exp(rate * (before - after)) + offset + _UNCERTAINTY_BONUS))


def summarise(moves: Sequence[ScoredMove]) -> dict[chess.Color, PlayerSummary]:
    """Return both sides of a game, from its moves in order; those that have no scores are left out of `moves`."""
    weights = _volatilities(moves)
    return {color: _summary_of(color, moves, weights) for color in chess.COLORS}


def _summary_of(color: chess.Color, moves: Sequence[ScoredMove], weights: Sequence[float]) -> PlayerSummary:
    own = [(move, weight) for move, weight in zip(moves, weights, strict=True) if move.mover == color]
    marks = Counter(move.mark for move, _ in own if move.mark is not None)
    if not own:
        return PlayerSummary(0, None, None, marks)
    accuracies = [move.accuracy for move, _ in own]
    weighted = statistics.fmean(accuracies, [weight for _, weight in own])
    harmonic = statistics.harmonic_mean([max(_LEAST_IN_HARMONIC_MEAN, value) for value in accuracies])
    average_loss = statistics.fmean(move.loss_cp for move, _ in own)
    return PlayerSummary(len(own), (weighted + harmonic) / 2, average_loss, marks)


def _volatilities(moves: Sequence[ScoredMove]) -> list[float]:
    """The weight of each move: how much the chances move in the window that ends with the position after it.

    The first moves, whose windows would begin before the game, have the weight of the first window.
    """
    if not moves:
        return []
    chances = [win_percent(moves[0].before_cp), *(win_percent(move.after_cp) for move in moves)]
    least, most = _WINDOW_PLIES
    size = max(least, min(most, len(moves) // _WINDOW_SHARE))
    deviations = np.lib.stride_tricks.sliding_window_view(chances, size).std(axis=1)
    weights: list[float] = np.clip(deviations, *_WEIGHTS).tolist()
    return [weights[0]] * (size - 2) + weights
