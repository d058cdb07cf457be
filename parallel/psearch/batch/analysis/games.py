"""Games: which positions of a PGN are analysed, and how the answers are written into it, for programs, and as a table.

`psearch.text.pgn_text` reads, `chess.pgn` writes. Evaluations are `[%eval ...]` comments seen from White, as GUIs
and web sites read them; a move that cost much gets the mark ?!, ? or ?? and the better line as a variation.
"""

from __future__ import annotations

import itertools
import re
import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import chess
import chess.engine
import chess.pgn

from psearch.batch.analysis.judgement import MARK_NAMES, MARKS, JudgedGame, PlayerSummary, Tally
from psearch.batch.positions.answer import Answer, Comparison
from psearch.batch.positions.comparing import MOST_BEHIND
from psearch.text.pgn_text import PgnGame
from psearch.text.report import relative_text, terminal_kind
from psearch_core.records import MAX_HISTORY

_NAGS = {mark: nag for _, nag, mark in MARKS}
_LINE_PLIES = 10
"""Length of a variation that shows what was better."""
_ASSESSMENTS = frozenset(range(chess.pgn.NAG_GOOD_MOVE, chess.pgn.NAG_DUBIOUS_MOVE + 1))
"""!, ?, !!, ??, !? and ?!: a move that has one keeps it."""
_COLUMNS = 80
MOST_PV_PLIES = 20
"""Length of the lines that programs are given, at most."""
PLAYER_COLUMNS = ("player", "accuracy", "loss, cp", *MARK_NAMES)
"""Head of the rows."""
TOTAL_COLUMNS = ("player", "games", *PLAYER_COLUMNS[1:])
"""Head of the rows of many games."""
_MOST_PLAYERS = 30
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
    """Yield the positions of a game that can be searched, all on one board that goes back move by move."""
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


def _set_eval(node: chess.pgn.GameNode, score: chess.engine.PovScore, answer: Answer | None) -> None:
    """Note the evaluation of a position, by a search or the rules. The format has no bounds: words tell of one."""
    node.comment = _BOUND_WORDS.sub(r"\1", node.comment)  # from another analysis
    node.set_eval(score, answer.line.depth if answer is not None else None)
    bound = answer.estimate[1] if answer is not None else "exact"
    if bound != "exact":
        words = "at least" if (bound == "lower") == (score.turn == chess.WHITE) else "at most"
        node.comment = _EVAL.sub(rf"\g<0> {words} {relative_text(score.white())}", node.comment, count=1)


def _add_line(parent: chess.pgn.GameNode, board: chess.Board, compared: Comparison) -> None:
    """Add the better line as a variation, unless there is one that begins so."""
    walk = board.copy(stack=False)
    node = parent
    for number, word in enumerate(compared.pv[:_LINE_PLIES]):
        move = walk.parse_uci(word)
        if number == 0 and parent.has_variation(move):
            return
        node = node.add_variation(move)
        if number == 0:
            node.set_eval(chess.engine.PovScore(compared.best_score, board.turn), compared.depth)
        walk.push(move)


# -- for programs ----------------------------------------------------------------------------------------------------


def game_object(judged: JudgedGame, file: str) -> dict[str, Any]:
    """Return a game. file: as the user named it."""
    work = judged.work
    return {
        "file": file,
        "game": work.number,
        "headers": dict(work.game.headers),
        "problem": work.problem.text if work.problem is not None else None,
        "players": {chess.COLOR_NAMES[color]: _player_object(judged.players[color]) for color in chess.COLORS},
        "positions": list(_position_objects(judged)) if work.readable else [],
    }


def games_summary(tally: Tally, total: int) -> dict[str, Any]:
    """Return all games. total: how many there are, finished or not."""
    return {
        "games": total,
        "finished": tally.games,
        "positions": tally.positions,
        **_mark_counts(tally.marks),
        **({} if tally.kept is None else {"kept": tally.kept}),
    }


def _player_object(player: PlayerSummary) -> dict[str, Any]:
    return {
        "moves": player.moves,
        "accuracy": None if player.accuracy is None else round(player.accuracy, 2),
        "average_loss": None if player.average_loss is None else round(player.average_loss, 2),
        **_mark_counts(player.marks),
    }


def _mark_counts(marks: Mapping[str, int]) -> dict[str, int]:
    return {name: marks.get(mark, 0) for mark, name in MARK_NAMES.items()}


def _position_objects(judged: JudgedGame) -> Iterator[dict[str, Any]]:
    """The positions of the main line, each with the move that was played in it."""
    board = judged.work.game.board()
    played = list(judged.work.game.mainline_moves())
    for ply in range(len(played) + 1):
        values: dict[str, Any] = {"ply": ply, "fen": board.fen()}
        if ply in judged.answers:
            values |= judged.answers[ply].as_json(MOST_PV_PLIES)
        elif not any(board.legal_moves):
            values["result"] = terminal_kind(board)
        if ply < len(played):
            move, found = played[ply], judged.moves[ply]
            values |= {"move": board.uci(move), "san": board.san(move), "mark": found.mark}
            values["loss"] = None if found.loss is None else round(found.loss, 4)
            values["compared"] = None if found.compared is None else found.compared.as_json()
            board.push(move)
        yield values


# -- for people ------------------------------------------------------------------------------------------------------


def game_title(judged: JudgedGame, file: str | None) -> str:
    """Return `game 3: London, 1851.06.21, 1-0`; with the name of the file if it is given. What the tags do not say is
    left out."""
    headers = judged.work.game.headers
    facts = (headers.get(name, "").replace(".??", "") for name in ("Event", "Date", "Result"))
    known = ", ".join(fact for fact in facts if fact.strip("?.* "))
    title = f"game {judged.work.number}"
    if file is not None:
        title = f"{file}, {title}"
    return f"{title}: {known}" if known else title


class Players:
    """What the players of many games did, added up by their names."""

    def __init__(self) -> None:
        self._games: dict[str, list[PlayerSummary]] = {}

    def add(self, judged: JudgedGame) -> None:
        """Add a game; a side without a name, or without a judged move, does not count."""
        for color in chess.COLORS:
            name = judged.work.game.headers.get(chess.COLOR_NAMES[color].capitalize(), "").strip("? ")
            if name and judged.players[color].moves:
                self._games.setdefault(name, []).append(judged.players[color])

    def rows(self) -> list[list[str]]:
        """Return those with the most games under `TOTAL_COLUMNS`, the most accurate first; nobody, if all have one
        game.

        Accuracy is the mean of the games, loss that of the moves.
        """
        most = sorted(self._games.items(), key=lambda item: -len(item[1]))[:_MOST_PLAYERS]
        if not most or len(most[0][1]) == 1:
            return []
        totals = []
        for name, games in most:
            accuracy = statistics.fmean(game.accuracy or 0.0 for game in games)
            loss = statistics.fmean((game.average_loss or 0.0 for game in games), [game.moves for game in games])
            marks = [str(sum(game.marks.get(mark, 0) for game in games)) for mark in MARK_NAMES]
            totals.append((accuracy, [name, f"{len(games):,}", f"{accuracy:.1f}%", f"{loss:.0f}", *marks]))
        return [row for _, row in sorted(totals, key=lambda total: -total[0])]


def player_rows(judged: JudgedGame) -> list[list[str]]:
    """Return White's row and Black's, under `PLAYER_COLUMNS`; `-` where there was no move to judge."""
    rows = []
    for color in chess.COLORS:
        side = chess.COLOR_NAMES[color].capitalize()
        name = judged.work.game.headers.get(side, "?")
        player = judged.players[color]
        accuracy = "-" if player.accuracy is None else f"{player.accuracy:.1f}%"
        loss = "-" if player.average_loss is None else f"{player.average_loss:.0f}"
        marks = [str(player.marks.get(mark, 0)) for mark in MARK_NAMES]
        rows.append([side if name.strip("? ") == "" else f"{side}, {name}", accuracy, loss, *marks])
    return rows
