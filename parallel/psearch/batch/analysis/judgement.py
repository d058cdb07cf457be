"""What a search thinks of the moves of a game: evaluation, loss, mark, and a summary of each player.

`psearch.batch.analysis.games` writes it into the game, into an object for programs, and into a table.

Accuracy, average centipawn loss and counts of marks are those of lichess.org. From scores of the positions a chance to
win is made, from what a move took from it the accuracy of the move, from those the accuracy of the player. The formulas
and their constants are those that lichess.org explains on https://lichess.org/page/accuracy and uses in
`WinPercent.scala`, `AccuracyPercent.scala` and `AccuracyCP.scala` of https://github.com/lichess-org/lila; the code is
our own.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import chess
import chess.engine
import chess.pgn
import numpy as np

from psearch.batch.positions.answer import Answer, Comparison
from psearch.batch.positions.comparing import LEAST_LOSS, compared_loss, loss_of, sure_loss
from psearch.text.pgn_text import PgnGame
from psearch.text.values import counted

MARKS = (
    (0.15, chess.pgn.NAG_BLUNDER, "??"),
    (0.10, chess.pgn.NAG_MISTAKE, "?"),
    (LEAST_LOSS, chess.pgn.NAG_DUBIOUS_MOVE, "?!"),
)
"""Least loss of expected points (0 to 1), NAG, and how people write it; the worst first. The thresholds are those of
lichess.org (0.3, 0.2 and 0.1 on its scale from -1 to 1), the expected points those of `psearch.text.wdl`."""
MARK_NAMES = {"?!": "inaccuracies", "?": "mistakes", "??": "blunders"}
"""What lichess.org calls the moves that have them."""
_CHANCE_PER_CP = 0.00368208
"""Slope of the logistic curve that lichess fitted to games of players of 2300."""
_CAP_CP = 1_000
"""Scores beyond that, and mates, count as that much."""
_CURVE = (103.1668100711649, -0.04354415386753951, -3.166924740191411)
"""The accuracy is a * exp(b * loss) + c, with the loss in percent of the chance to win."""
_UNCERTAINTY_BONUS = 1.0
"""Percent for each move that lost something: analysis errs, too."""
_WINDOW_SHARE = 10
"""A window is the number of moves over this, within `_WINDOW_PLIES`."""
_WINDOW_PLIES = (2, 8)
_WEIGHTS = (0.5, 12.0)
"""Least and largest weight of a move: the standard deviation, in percent, of the chances around it."""
_LEAST_IN_HARMONIC_MEAN = 1.0
"""Least accuracy in percent that counts: one move must not decide everything."""


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
    weighted = min(max(accuracies), statistics.fmean(accuracies, [weight for _, weight in own]))  # but for rounding
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


# -- the moves of a game ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class JudgedMove:
    """A move of the main line."""

    mover: chess.Color
    score: chess.engine.PovScore | None
    """of the position after it; None where that was not searched"""
    is_best: bool
    """the search would have played it, and it has no mark"""
    loss: float | None
    """expected points that it gave away, 0 to 1; None where that cannot be said"""
    compared: Comparison | None
    """with the best move, where it may be a mistake"""
    mark: str | None
    """?!, ? or ??"""


@dataclass(frozen=True)
class JudgedGame:
    """A game with what was found in it."""

    work: PgnGame
    answers: Mapping[int, Answer]
    """of its positions, by the number of plies played before them"""
    moves: list[JudgedMove]
    """one for each move of the main line"""
    players: Mapping[chess.Color, PlayerSummary]


@dataclass
class Tally:
    """What was found in the games so far."""

    games: int = 0
    positions: int = 0
    marks: dict[str, int] = field(default_factory=lambda: dict.fromkeys(MARK_NAMES, 0))
    kept: int | None = None
    """answers that were there already; None: there were none to be counted"""

    def add(self, judged: JudgedGame, kept: int = 0) -> None:
        """Add a finished game. kept: of its answers."""
        self.games += 1
        if self.kept is not None:
            self.kept += kept
        self.positions += len(judged.answers)
        for move in judged.moves:
            if move.mark is not None:
                self.marks[move.mark] += 1

    def text(self) -> str:
        """Return one line."""
        found = ", ".join(f"{count} {mark}" for mark, count in self.marks.items())
        kept = "" if self.kept is None else f", {self.kept:,} kept from older results"
        return f"{counted(self.games, 'game')}, {counted(self.positions, 'position')}, {found}{kept}"


def judge_game(work: PgnGame, answers: Mapping[int, Answer]) -> JudgedGame:
    """Judge each move of the main line by the answers for the positions before and after it."""
    moves = list(_judge_moves(work, answers)) if work.readable else []
    return JudgedGame(work, answers, moves, summarise(list(_scored_moves(moves, answers.get(0)))))


def _judge_moves(work: PgnGame, answers: Mapping[int, Answer]) -> Iterator[JudgedMove]:
    board = work.game.board()
    for ply, move in enumerate(work.game.mainline_moves()):
        after = board.copy(stack=False)
        after.push(move)
        best, reached = answers.get(ply), answers.get(ply + 1)
        is_best = best is not None and bool(move) and best.move(board) == move
        loss = 0.0 if is_best else _loss(board, move, after, best, reached)
        compared = None if best is None or not move else best.compared
        mark = None
        if compared is not None:
            loss, sure = compared_loss(board, compared), sure_loss(board, compared)
            mark = next((mark for least, _, mark in MARKS if sure >= least), None)
            is_best = is_best and mark is None  # two comparisons know better
            loss = 0.0 if is_best else loss
        yield JudgedMove(board.turn, _score_of(after, reached), is_best, loss, compared, mark)
        board = after


def _score_of(board: chess.Board, answer: Answer | None) -> chess.engine.PovScore | None:
    """Return the score of a position; the rules know that of one where the game is over."""
    if answer is not None:
        return chess.engine.PovScore(answer.estimate[0], board.turn)
    if board.is_checkmate():
        return chess.engine.PovScore(chess.engine.Mate(0), board.turn)
    return chess.engine.PovScore(chess.engine.Cp(0), board.turn) if board.is_stalemate() else None


def _loss(
    board: chess.Board, move: chess.Move, after: chess.Board, best: Answer | None, reached: Answer | None
) -> float | None:
    """Return expected points that a move gave away; None for a null move, and for one before a position that was not
    searched."""
    if best is None or not move or (reached is None and any(after.legal_moves)):
        return None
    return loss_of(board, after, best.estimate[0], None if reached is None else reached.estimate[0])


def _scored_moves(moves: list[JudgedMove], first: Answer | None) -> Iterator[ScoredMove]:
    """Yield the moves that have a loss, as the summary wants them."""
    before = None
    if moves and first is not None:
        before = chess.engine.PovScore(first.estimate[0], moves[0].mover)
    for move in moves:
        if before is not None and move.score is not None and move.loss is not None:
            before_cp, after_cp = capped_cp(before.white()), capped_cp(move.score.white())
            yield ScoredMove(move.mover, before_cp, after_cp, move.is_best, move.mark, _compared_cp(move))
        before = move.score


def _compared_cp(move: JudgedMove) -> tuple[int, int] | None:
    if move.compared is None:
        return None
    scores = (move.compared.best_score, move.compared.played_score)
    best, played = (capped_cp(chess.engine.PovScore(score, move.mover).white()) for score in scores)
    return best, played
