"""Games: which positions of a PGN are analysed, and how the answers are written into it.

`psearch.notation.pgn` reads, `chess.pgn` writes. Evaluations are `[%eval ...]` comments seen from White, as GUIs
and web sites read them; a move that cost much gets the mark ?!, ? or ?? and the better line as a variation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import chess
import chess.engine
import chess.pgn

from psearch.analysis.analyser import Answer
from psearch.core.records import MAX_HISTORY
from psearch.notation.pgn import PgnGame, Where
from psearch.notation.report import relative_text
from psearch.notation.wdl import expected_points

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
_EVAL = re.compile(r"\[%eval [^\]]*\]")
_BOUND_WORDS = re.compile(rf"({_EVAL.pattern}) at (?:least|most) [-+#][-\d.]+")


@dataclass(frozen=True)
class Task:
    """A position of a game that has to be searched."""

    ply: int
    """moves played before it"""
    board: chess.Board
    """with the last moves of the game on its stack, as many as a search looks at"""


def tasks(work: PgnGame) -> Iterator[Task]:
    """The positions of a game from the last to the first, so that the table knows what the moves led to.

    A position is left out when it has no legal move, or is none (after a null move). One board with the history of the
    whole game is in memory, beside what the caller keeps.
    """
    for board in _positions(work):
        yield Task(len(board.move_stack), board.copy(stack=MAX_HISTORY))


def count_tasks(work: PgnGame) -> int:
    """How many there are."""
    return sum(1 for _ in _positions(work))


def _positions(work: PgnGame) -> Iterator[chess.Board]:
    """The positions of a game that can be searched, all on one board that goes back move by move."""
    if not work.readable or work.game.next() is None:
        return
    board = work.game.board()
    for move in work.game.mainline_moves():
        board.push(move)
    while True:
        if board.is_valid() and any(board.legal_moves):
            yield board
        if not board.move_stack:
            return
        board.pop()


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


def annotate(work: PgnGame, answers: dict[int, Answer], tally: Tally) -> str:
    """Write the answers (by ply) into the game; the game as PGN, with an empty line after it."""
    tally.games += 1
    tally.positions += len(answers)
    if not work.readable:
        return work.original() + "\n\n"
    node: chess.pgn.GameNode = work.game
    board = work.game.board()
    last: chess.pgn.GameNode = work.game.end()
    ply = 0
    while (child := node.next()) is not None:
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
        _set_eval(child, reached, after.turn)
    elif after.is_stalemate():
        child.set_eval(chess.engine.PovScore(chess.engine.Cp(0), after.turn))
    if best is None or not child.move or before.parse_uci(best.best) == child.move:
        return  # nothing to say about a null move
    loss = expected_points(best.estimate[0], before) - _points_of_mover(after, reached)
    for least, nag, mark in MARKS:
        if loss >= least:
            if not child.nags & _ASSESSMENTS:
                child.nags.add(nag)
            tally.marks[mark] += 1
            _add_line(child.parent, before, best)
            return


def _set_eval(node: chess.pgn.GameNode, answer: Answer, turn: chess.Color) -> None:
    """The evaluation of a position with this side to move. The format has no bounds: a word behind tells of one."""
    score, bound = answer.estimate
    node.comment = _BOUND_WORDS.sub(r"\1", node.comment)  # from another analysis
    node.set_eval(chess.engine.PovScore(score, turn))
    if bound != "exact":
        words = "at least" if (bound == "lower") == (turn == chess.WHITE) else "at most"
        text = relative_text(chess.engine.PovScore(score, turn).white())
        node.comment = _EVAL.sub(rf"\g<0> {words} {text}", node.comment, count=1)


def _points_of_mover(after: chess.Board, reached: Answer | None) -> float:
    """What the side that has just moved can expect, 0 to 1."""
    if reached is not None:
        return 1 - expected_points(reached.estimate[0], after)
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
            _set_eval(node, best, board.turn)
        walk.push(move)


def _plain(text: str) -> str:
    """Without what would end a comment."""
    return text.replace("{", "(").replace("}", ")")
