"""Games: which positions of a PGN are analysed, and how the answers are written into it.

`psearch.text.pgn_text` reads, `chess.pgn` writes. Evaluations are `[%eval ...]` comments seen from White, as GUIs
and web sites read them; a move that cost much gets the mark ?!, ? or ?? and the better line as a variation.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import chess
import chess.engine
import chess.pgn

from psearch.batch.analysis.accuracy import PlayerSummary
from psearch.batch.analysis.analyser import PositionAnswer
from psearch.batch.analysis.judgement import MARKS, JudgedGame
from psearch.batch.positions.comparing import MOST_BEHIND, scores_of
from psearch.batch.positions.jobs import Comparison
from psearch.core.records import MAX_HISTORY
from psearch.text.pgn_text import PgnGame
from psearch.text.report import relative_text

_NAGS = {mark: nag for _, nag, mark in MARKS}
_LINE_PLIES = 10
"""of a variation that shows what was better"""
_ASSESSMENTS = frozenset(range(chess.pgn.NAG_GOOD_MOVE, chess.pgn.NAG_DUBIOUS_MOVE + 1))
"""!, ?, !!, ??, !? and ?!: a move that has one keeps it"""
_COLUMNS = 80
_EVAL = re.compile(r"\[%eval [^\]]*\]")
_BOUND_WORDS = re.compile(rf"({_EVAL.pattern}) at (?:least|most) [-+#][-\d.]+")


@dataclass(frozen=True)
class Place:
    """A position of a game that has to be searched."""

    ply: int
    """moves played before it"""
    board: chess.Board
    """with the last moves of the game on its stack, as many as a search looks at"""
    line: list[chess.Move]
    """the first moves that follow in the game, up to a null move"""


def positions(work: PgnGame) -> Iterator[Place]:
    """Yield the positions of a game from the last to the first, so that the table knows what the moves led to.

    A position is left out when it has no legal move, or is none (after a null move). One board with the history of the
    whole game is in memory, beside what the caller keeps.
    """
    moves = list(work.game.mainline_moves())
    for board in _positions(work):
        ply = len(board.move_stack)
        line = list(itertools.takewhile(bool, moves[ply : ply + MOST_BEHIND]))
        yield Place(ply, board.copy(stack=MAX_HISTORY), line)


def count_positions(work: PgnGame) -> int:
    """Return how many there are."""
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


def annotate(judged: JudgedGame, annotator: str) -> str:
    """Write what was found into the game; the game as PGN, with an empty line after it.

    annotator: begins with `psearch `; who is named as annotator already stays.
    """
    work = judged.work
    if not work.readable:
        return work.original() + "\n\n"
    _set_tags(work.game.headers, judged.players, annotator)
    node: chess.pgn.GameNode = work.game
    board = work.game.board()
    for ply, found in enumerate(judged.moves):
        child = node.next()
        assert child is not None
        if found.mark is not None and found.compared is not None:
            if not child.nags & _ASSESSMENTS:
                child.nags.add(_NAGS[found.mark])
            _add_line(node, board, found.compared)
        board.push(child.move)
        if found.score is not None:
            _set_eval(child, found.score, judged.answers.get(ply + 1))
        node = child
    exporter = chess.pgn.StringExporter(columns=_COLUMNS, headers=True, variations=True, comments=True)
    return work.game.accept(exporter) + "\n\n"


def _set_tags(headers: chess.pgn.Headers, players: Mapping[chess.Color, PlayerSummary], annotator: str) -> None:
    """Set tags that say who analysed and what came out, in place of what an earlier analysis has left."""
    # several names are separated by colons (PGN standard, 9.9.1 and 8.1.1.4)
    others = [name for name in headers.get("Annotator", "").split(":") if name and not name.startswith("psearch ")]
    headers["Annotator"] = ":".join([*others, annotator])
    for color, player in players.items():
        side = chess.COLOR_NAMES[color].capitalize()
        for tag, value in (
            ("Accuracy", None if player.accuracy is None else f"{player.accuracy:.1f}"),
            ("ACPL", None if player.average_loss is None else f"{player.average_loss:.0f}"),
        ):
            headers.pop(side + tag, None)
            if value is not None:
                headers[side + tag] = value


def _set_eval(node: chess.pgn.GameNode, score: chess.engine.PovScore, answer: PositionAnswer | None) -> None:
    """The evaluation of a position, by a search or the rules. The format has no bounds: words behind it tell of one."""
    node.comment = _BOUND_WORDS.sub(r"\1", node.comment)  # from another analysis
    node.set_eval(score, answer.depth if answer is not None else None)
    bound = answer.estimate[1] if answer is not None else "exact"
    if bound != "exact":
        words = "at least" if (bound == "lower") == (score.turn == chess.WHITE) else "at most"
        node.comment = _EVAL.sub(rf"\g<0> {words} {relative_text(score.white())}", node.comment, count=1)


def _add_line(parent: chess.pgn.GameNode, board: chess.Board, compared: Comparison) -> None:
    """The better line as a variation, unless there is one that begins so."""
    walk = board.copy(stack=False)
    node = parent
    for number, word in enumerate(compared.pv[:_LINE_PLIES]):
        move = walk.parse_uci(word)
        if number == 0 and parent.has_variation(move):
            return
        node = node.add_variation(move)
        if number == 0:
            best, _ = scores_of(compared)
            node.set_eval(chess.engine.PovScore(best, board.turn), compared.depth)
        walk.push(move)
