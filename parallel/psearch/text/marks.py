"""Marks of moves, by the scores of the best move and of the played one.

`lichess` is the rule that lichess.org publishes (`Advice.scala`, `WinPercent.scala`, `AccuracyPercent.scala` of
https://github.com/lichess-org/lila; the code is our own): the loss of winning chances, and mates that a move loses or
allows. `psearch` is the loss of expected points by the model of `psearch.text.wdl`, which knows the material. Bar and
graph of the page show `winning_chance`, too.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import chess
import chess.engine

from psearch.results import WON_CP, relative_text
from psearch.text.wdl import expected_points

LEAST_LOSS = 0.05
"""Least loss (0 to 1) that gets a mark."""
MARKS = ((0.15, "??"), (0.10, "?"), (LEAST_LOSS, "?!"))
"""Marks, the worst first, each after its least loss (0 to 1). The thresholds are those of lichess.org (0.3, 0.2 and
0.1 on its scale from -1 to 1)."""
MARK_NAMES = {"?!": "inaccuracies", "?": "mistakes", "??": "blunders"}
"""Names of the marks on lichess.org."""
_WORDS = {"?!": "Inaccuracy", "?": "Mistake", "??": "Blunder"}
_CHANCE_PER_CP = 0.00368208
"""Slope of the logistic curve that lichess fitted to games of players rated 2300."""
_CAP_CP = 1_000
"""Largest absolute score that counts, in centipawns, also for mates."""
_MATE_MARKS = ((999, "?!"), (700, "?"))
"""Marks of a mate that is lost or allowed although the side that wins has, or had, more than so many centipawns
anyway; otherwise it is a blunder."""
_WON, _NOT_WON = 0.75, 0.6
"""Winning chances of a won position, and below which a win is missed: 3.0 and 1.1 pawns."""


def capped_cp(score: chess.engine.Score) -> int:
    """Return a score in centipawns from -1000 to 1000; a mate is one end of that range."""
    return max(-_CAP_CP, min(_CAP_CP, score.score(mate_score=1_000_000)))


def win_percent(cp: float) -> float:
    """Return the chance to win, 0 to 100, of the side that has a score in centipawns.

    >>> win_percent(0), round(win_percent(100), 1), round(win_percent(-1000), 1)
    (50.0, 59.1, 2.5)
    """
    return 50 + 50 * (2 / (1 + math.exp(-_CHANCE_PER_CP * cp)) - 1)


def winning_chance(score: chess.engine.Score) -> float:
    """Return lichess's chance to win, 0 to 1, of the side with this score; certain for a mate."""
    if score.is_mate():
        return float(score == chess.engine.MateGiven or score > chess.engine.Cp(0))
    return win_percent(capped_cp(score)) / 100


class Scores(NamedTuple):
    """Scores of the best move and of the played one, for the mover."""

    best: chess.engine.Score
    played: chess.engine.Score

    @property
    def mates(self) -> str | None:
        """Mark of lichess's rule for a mate that the move loses or allows; None if it does neither."""
        best, played = self.best.mate(), self.played.mate()
        loses = best is not None and best > 0 and (played is None or played < 0)
        allows = best is None and played is not None and played < 0
        if not (loses or allows) or (self.played.score() or 0) >= WON_CP:
            return None
        anyway = self.played.score() if loses else -(self.best.score() or 0)
        return next((mark for least, mark in _MATE_MARKS if (anyway or 0) > least), "??")

    def loss(self, board: chess.Board, rule: str) -> float:
        """Return the loss by a rule, 0 to 1. board: the position before the move."""
        if rule == "psearch":
            return max(0.0, expected_points(self.best, board) - expected_points(self.played, board))
        return max(0.0, (win_percent(capped_cp(self.best)) - win_percent(capped_cp(self.played))) / 100)

    def mark(self, board: chess.Board, rule: str) -> str | None:
        """Return the mark of the move by a rule, if it gets one."""
        loss = self.loss(board, rule)
        if rule == "lichess" and (self.best.is_mate() or self.played.is_mate()):
            return self.mates
        return next((mark for least, mark in MARKS if loss >= least), None)

    def seeming_loss(self, board: chess.Board) -> float:
        """Return the larger loss of both rules, at least `LEAST_LOSS` for a mate that is lost or allowed."""
        return max(*(self.loss(board, rule) for rule in ("lichess", "psearch")), LEAST_LOSS if self.mates else 0.0)

    def words(self, board: chess.Board, mark: str, best: str) -> str:
        """Return the reason for a mark as lichess words it: `(3.21 → 0.12) Blunder: misses a win. Qxb7 was best.`"""
        scores = (relative_text(chess.engine.PovScore(score, board.turn).white()).lstrip("+") for score in self)
        before, after, why = self.best.mate(), self.played.mate(), ""
        if before is not None and before > 0:
            why = f": misses mate in {before}"
        elif after is not None and after < 0:
            why = f": allows mate in {-after}"
        elif winning_chance(self.best) >= _WON and winning_chance(self.played) < _NOT_WON:
            why = ": misses a win"
        return f"({' → '.join(scores)}) {_WORDS[mark]}{why}. {best} was best."
