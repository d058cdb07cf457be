"""What a search thinks of the moves of a game: evaluation, loss, mark, and a summary of each player.

`psearch.batch.analysis.games` writes it into the game, `psearch.batch.analysis.json_objects` into an object for
programs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import chess
import chess.engine
import chess.pgn

from psearch.batch.analysis.accuracy import PlayerSummary, ScoredMove, capped_cp, summarise
from psearch.batch.analysis.analyser import PositionAnswer
from psearch.batch.positions.comparing import LEAST_LOSS, compared_loss, loss_of, scores_of, sure_loss
from psearch.batch.positions.jobs import Comparison
from psearch.terminal.table import counted
from psearch.text.pgn_text import PgnGame

MARKS = (
    (0.15, chess.pgn.NAG_BLUNDER, "??"),
    (0.10, chess.pgn.NAG_MISTAKE, "?"),
    (LEAST_LOSS, chess.pgn.NAG_DUBIOUS_MOVE, "?!"),
)
"""Least loss of expected points (0 to 1), NAG, and how people write it; the worst first. The thresholds are those of
lichess.org (0.3, 0.2 and 0.1 on its scale from -1 to 1), the expected points those of `psearch.text.wdl`."""
MARK_NAMES = {"?!": "inaccuracies", "?": "mistakes", "??": "blunders"}
"""what lichess.org calls the moves that have them"""


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
    answers: Mapping[int, PositionAnswer]
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


def judge_game(work: PgnGame, answers: Mapping[int, PositionAnswer]) -> JudgedGame:
    """Judge each move of the main line by the answers for the positions before and after it."""
    moves = list(_judge_moves(work, answers)) if work.readable else []
    return JudgedGame(work, answers, moves, summarise(list(_scored_moves(moves, answers.get(0)))))


def _judge_moves(work: PgnGame, answers: Mapping[int, PositionAnswer]) -> Iterator[JudgedMove]:
    board = work.game.board()
    for ply, move in enumerate(work.game.mainline_moves()):
        after = board.copy(stack=False)
        after.push(move)
        best, reached = answers.get(ply), answers.get(ply + 1)
        is_best = best is not None and bool(move) and board.parse_uci(best.best) == move
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


def _score_of(board: chess.Board, answer: PositionAnswer | None) -> chess.engine.PovScore | None:
    """The score of a position; the rules know that of one where the game is over."""
    if answer is not None:
        return chess.engine.PovScore(answer.estimate[0], board.turn)
    if board.is_checkmate():
        return chess.engine.PovScore(chess.engine.Mate(0), board.turn)
    return chess.engine.PovScore(chess.engine.Cp(0), board.turn) if board.is_stalemate() else None


def _loss(
    board: chess.Board,
    move: chess.Move,
    after: chess.Board,
    best: PositionAnswer | None,
    reached: PositionAnswer | None,
) -> float | None:
    """Expected points that a move gave away; there is nothing to say about a null move, and none before a position that
    was not searched."""
    if best is None or not move or (reached is None and any(after.legal_moves)):
        return None
    return loss_of(board, after, best.estimate[0], _estimate(reached))


def _estimate(answer: PositionAnswer | None) -> chess.engine.Score | None:
    return None if answer is None else answer.estimate[0]


def _scored_moves(moves: list[JudgedMove], first: PositionAnswer | None) -> Iterator[ScoredMove]:
    """The moves that have a loss, as the summary wants them."""
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
    best, played = (chess.engine.PovScore(score, move.mover).white() for score in scores_of(move.compared))
    return capped_cp(best), capped_cp(played)
