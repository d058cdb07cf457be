"""Games: which positions of a PGN are analysed, and how the answers are written into it.

Reading and writing PGN is python-chess's (`chess.pgn`). Evaluations are `[%eval ...]` comments seen from White, as GUIs
and web sites read them; a move that cost much gets the mark ?!, ? or ?? and the better line as a variation.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

import chess
import chess.engine
import chess.pgn

from psearch.analysis.analyser import Answer
from psearch.notation.fen import check_position
from psearch.notation.source import Source
from psearch.notation.wdl import expected_points
from psearch.results import PsearchError

MARKS = (
    (0.15, chess.pgn.NAG_BLUNDER, "??"),
    (0.10, chess.pgn.NAG_MISTAKE, "?"),
    (0.05, chess.pgn.NAG_DUBIOUS_MOVE, "?!"),
)
"""Least loss of expected points (0 to 1), NAG, and how people write it; the worst first. The thresholds are those of
lichess.org (0.3, 0.2 and 0.1 on its scale from -1 to 1), the expected points those of `psearch.notation.wdl`."""

_LINE_PLIES = 10
"""of a variation that shows what was better"""
_ASSESSMENTS = frozenset(range(chess.pgn.NAG_GOOD_MOVE, chess.pgn.NAG_DUBIOUS_MOVE + 1))
"""!, ?, !!, ??, !? and ?!: a move that has one keeps it"""
_COLUMNS = 80
_RESULTS = ("1-0", "0-1", "1/2-1/2", "*")
"""the parser takes them for moves inside a variation"""


class Where(Enum):
    """Where a game cannot be read."""

    GAME = "it is left as it is"
    MAIN_LINE = "what comes after that is left out"
    VARIATION = "the rest of that variation is left out"


@dataclass(frozen=True)
class Problem:
    """What is wrong with a game."""

    text: str
    """one line"""
    where: Where

    @property
    def consequence(self) -> str:
        """What becomes of the game."""
        return self.where.value


class _Builder(chess.pgn.GameBuilder[chess.pgn.Game]):
    """Keeps problems, those of the main line first, and logs nothing.

    What follows an unreadable move is skipped here and not by the parser: that one goes on after a variation with the
    board of the variation (python-chess 1.11), and would take the main line for moves of another position.
    """

    def __init__(self) -> None:
        super().__init__(Game=chess.pgn.Game)
        self._skips_from: int | None = None
        """depth of variations, 1 for the main line, from which on moves are skipped"""
        self._move = chess.Move.null()

    def begin_parse_san(self, board: chess.Board, san: str) -> chess.pgn.SkipType | None:
        if self._skips_from is not None or san in _RESULTS:
            return chess.pgn.SKIP
        try:
            self._move = board.parse_san(san)
        except ValueError as error:
            self._skips_from = len(self.variation_stack)
            self.handle_error(error)
            return chess.pgn.SKIP
        return None

    def parse_san(self, board: chess.Board, san: str) -> chess.Move:
        return self._move

    def begin_variation(self) -> chess.pgn.SkipType | None:  # type: ignore[override]  # as BaseVisitor has it
        if self._skips_from is not None:
            self.variation_stack.append(self.variation_stack[-1])  # end_variation takes it off
            return chess.pgn.SKIP
        return super().begin_variation()

    def end_variation(self) -> None:
        super().end_variation()
        if self._skips_from is not None and len(self.variation_stack) < self._skips_from:
            self._skips_from = None

    def visit_comment(self, comment: str) -> None:
        if self._skips_from is None:
            super().visit_comment(comment)

    def visit_nag(self, nag: int) -> None:
        if self._skips_from is None:
            super().visit_nag(nag)

    def handle_error(self, error: Exception) -> None:
        text = " ".join(str(error).split())
        if len(self.variation_stack) > 1:
            self.game.errors.append(_Problem(Problem(f"in a variation, {text}", Where.VARIATION)))
        else:
            self.game.errors.insert(0, _Problem(Problem(text, Where.MAIN_LINE)))


class _Problem(Exception):
    """A problem among the errors of a game, which must be exceptions."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.text)
        self.problem = problem


@dataclass(frozen=True)
class Task:
    """A position of a game that has to be searched."""

    ply: int
    """moves played before it"""
    board: chess.Board
    """with the moves of the game on its stack"""


@dataclass
class GameTasks:
    """One game, and what is to be done with it."""

    number: int
    """in the file, from 1"""
    game: chess.pgn.Game
    problem: Problem | None
    """the worst that is wrong with it"""

    @property
    def readable(self) -> bool:
        """False when not even its first position is one of chess."""
        return self.problem is None or self.problem.where is not Where.GAME

    def tasks(self) -> Iterator[Task]:
        """Its positions from the last to the first, so that the table knows what the moves led to.

        A position is left out when it has no legal move, or is none (after a null move).
        """
        if not self.readable or self.game.next() is None:
            return
        boards = [self.game.board()]
        for move in self.game.mainline_moves():
            board = boards[-1].copy()
            board.push(move)
            boards.append(board)
        for ply in range(len(boards) - 1, -1, -1):
            if boards[ply].is_valid() and any(boards[ply].legal_moves):
                yield Task(ply, boards[ply])


def read_games(source: Source) -> Iterator[GameTasks]:
    """The games of a PGN, one after the other: only one is in memory at a time."""
    stream = io.StringIO(source.text)
    number = 0
    while True:
        game = chess.pgn.read_game(stream, Visitor=_Builder)
        if game is None:
            return
        number += 1
        yield GameTasks(number, game, _problem_of(game))


def _problem_of(game: chess.pgn.Game) -> Problem | None:
    try:
        check_position(game.board())
    except (PsearchError, ValueError) as error:
        return Problem(str(error), Where.GAME)
    return next((error.problem for error in game.errors if isinstance(error, _Problem)), None)


@dataclass
class Tally:
    """What was found in the games so far."""

    games: int = 0
    positions: int = 0
    marks: dict[str, int] = field(default_factory=lambda: {mark: 0 for _, _, mark in reversed(MARKS)})

    def text(self) -> str:
        """One line."""
        found = ", ".join(f"{count} {mark}" for mark, count in self.marks.items())
        return f"{self.games:,} games, {self.positions:,} positions, {found}"


def annotate(work: GameTasks, answers: dict[int, Answer], tally: Tally) -> str:
    """Write the answers (by ply) into the game; the game as PGN, with an empty line after it."""
    tally.games += 1
    tally.positions += len(answers)
    node: chess.pgn.GameNode = work.game
    board = work.game.board() if work.readable else None
    last: chess.pgn.GameNode = work.game.end()
    ply = 0
    while board is not None and (child := node.next()) is not None:
        after = board.copy(stack=False)
        after.push(child.move)
        _annotate_move(child, board, after, answers.get(ply), answers.get(ply + 1), tally)
        node, board, ply = child, after, ply + 1
    if work.problem is not None and work.problem.where is Where.MAIN_LINE:
        last.comment = f"{last.comment} psearch could not read on: {_plain(work.problem.text)}".strip()
    exporter = chess.pgn.StringExporter(columns=_COLUMNS, headers=True, variations=True, comments=True)
    return work.game.accept(exporter) + "\n\n"


def _annotate_move(
    child: chess.pgn.ChildNode,
    before: chess.Board,
    after: chess.Board,
    best: Answer | None,
    reached: Answer | None,
    tally: Tally,
) -> None:
    """Evaluation, mark and better line of one move. best, reached: answers of the positions before and after it."""
    if reached is not None:
        child.set_eval(chess.engine.PovScore(reached.score, after.turn))
    elif after.is_stalemate():
        child.set_eval(chess.engine.PovScore(chess.engine.Cp(0), after.turn))
    if best is None or not child.move or before.parse_uci(best.best) == child.move:
        return  # nothing to say about a null move
    loss = expected_points(best.score, before) - _points_of_mover(after, reached)
    for least, nag, mark in MARKS:
        if loss >= least:
            if not child.nags & _ASSESSMENTS:
                child.nags.add(nag)
            tally.marks[mark] += 1
            _add_line(child.parent, before, best)
            return


def _points_of_mover(after: chess.Board, reached: Answer | None) -> float:
    """What the side that has just moved can expect, 0 to 1."""
    if reached is not None:
        return 1 - expected_points(reached.score, after)
    return 1.0 if after.is_checkmate() else 0.5


def _add_line(parent: chess.pgn.GameNode, board: chess.Board, best: Answer) -> None:
    """The better line as a variation, unless there is one that begins so."""
    walk = board.copy(stack=False)
    node = parent
    for number, word in enumerate(best.pv[:_LINE_PLIES]):
        move = walk.parse_uci(word)
        if number == 0 and parent.has_variation(move):
            return
        node = node.add_variation(move)
        if number == 0:
            node.set_eval(chess.engine.PovScore(best.score, board.turn))
        walk.push(move)


def _plain(text: str) -> str:
    """Without what would end a comment."""
    return text.replace("{", "(").replace("}", ")")
