"""`psearch analyse` of games: PGN with what was found, or JSON, and a summary of each player."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import chess
import chess.engine

from psearch.batch.analysis.analyser import ANSWERS, PositionAnswer, Stopped, Work, answer_of, position_task
from psearch.batch.analysis.games import annotate, count_positions, positions
from psearch.batch.analysis.json_objects import game_object, games_summary
from psearch.batch.analysis.judgement import Tally, judge_game
from psearch.batch.analysis.player_table import PLAYER_COLUMNS, TOTAL_COLUMNS, Players, game_title, player_rows
from psearch.batch.positions.jobs import Task
from psearch.faces.cli.analysis_session import (
    Input,
    Problems,
    complain_beside,
    hash_of,
    limit_text,
    older_results,
    open_session,
)
from psearch.faces.cli.exit_status import EXIT_WRONG
from psearch.faces.cli.output import complain, say
from psearch.results import Limits, PsearchError
from psearch.terminal.status import StatusLine
from psearch.terminal.table import counted
from psearch.text.pgn_text import PgnGame, read_games
from psearch.text.report import relative_text
from psearch.version import __version__

if TYPE_CHECKING:
    from psearch.batch.analysis.older_results import OlderResults
    from psearch.faces.cli.signals import Signals

_UnderWay = dict[str, tuple[str, chess.Color]]
"""By the key of a position: its game and move, and whose turn it is."""


def analyse_games(inputs: Sequence[Input], options: argparse.Namespace, signals: Signals) -> int:
    """Analyse games and return the exit status."""
    older = older_results(options)
    survey = _survey(inputs)
    players = Players()
    under_way: _UnderWay = {}
    tally = Tally(kept=None if older is None else 0)
    annotator = f"psearch {__version__}, {limit_text(options)}"

    def summary() -> str:
        return json.dumps({"summary": games_summary(tally, survey.games)}) + "\n" if options.json else ""

    hash_mb = hash_of(options, is_emptied=False)
    failed = 0
    with open_session(inputs, options, signals, survey.positions, hash_mb, ANSWERS) as session:

        def tell(key: str, answer: PositionAnswer) -> None:
            """Show which position was searched last, and its score seen from White."""
            where, turn = under_way[key]
            score = chess.engine.PovScore(answer.estimate[0], turn).white()
            session.progress.say(f"{where} {relative_text(score, 'exact')}")

        session.analyser.on_found = tell
        for problem in survey.problems.told():
            complain_beside(session.progress, problem)
        try:
            for done in session.analyser.answered(_works(inputs, session.limits, older, under_way)):
                entry = done.item
                name = inputs[entry.file - 1].name
                judged = judge_game(entry.work, {entry.ply(key): answer for key, answer in done.answers.items()})
                for key, problem in done.problems.items():
                    failed += 1
                    place = f"{name}, game {entry.work.number}, ply {entry.ply(key)}"
                    complain_beside(session.progress, f"{place}: {problem}")
                for key in (*done.answers, *done.problems):
                    under_way.pop(key, None)
                tally.add(judged, done.from_older)
                if options.json:
                    session.put(json.dumps(game_object(judged, name)) + "\n")
                else:
                    session.put(annotate(judged, annotator))
                if judged.moves:
                    title = game_title(judged, name if len(inputs) > 1 else None)
                    session.progress.show_table(title, PLAYER_COLUMNS, player_rows(judged))
                    players.add(judged)
        except Stopped:
            session.progress.close()
            if not session.has_journal:
                session.put(summary())
            session.report_interruption()
            return signals.exit_status
        session.progress.close()
        session.put(summary())
        session.finish()
        if rows := players.rows():
            session.progress.show_table("all games:", TOTAL_COLUMNS, rows)
        cut = f"; {counted(survey.broken, 'game')} could not be read as written" if survey.broken else ""
        say(f"{tally.text()}{cut}")
    return EXIT_WRONG if survey.broken or failed else 0


@dataclass
class _Survey:
    """What must be known before the first search."""

    games: int = 0
    positions: int = 0
    """to search"""
    broken: int = 0
    """games in which something cannot be read"""
    problems: Problems = field(default_factory=Problems)

    def add(self, work: PgnGame, name: str) -> None:
        """Count a game of the file that is called so."""
        self.games += 1
        self.positions += count_positions(work)
        self.broken += bool(work.problems)
        for problem in work.problems:
            place = f"{name}, game {work.number}, line {problem.line}"
            self.problems.add(f"{place}: {problem.text}; {problem.consequence}")


def _survey(inputs: Sequence[Input]) -> _Survey:
    """Read everything once. Raises PsearchError for a file without a move."""
    survey = _Survey()
    with StatusLine(only_terminal=True) as status:
        for one in inputs:
            before = survey.positions
            for work in read_games(one.source):
                survey.add(work, one.source.name)
                found = f"{counted(survey.games, 'game')}, {counted(survey.positions, 'position')}"
                status(f"reading {one.source.name}: {found}")
            if survey.positions == before:
                *others, last = survey.problems.told() or [f"{one.source.name} has no game with moves"]
                for problem in others:
                    complain(problem)
                raise PsearchError(last)
    return survey


@dataclass(frozen=True)
class _GameEntry:
    """A game, and the file that has it."""

    file: int
    """from 1"""
    work: PgnGame

    @property
    def _prefix(self) -> str:
        return f"file {self.file} game {self.work.number} ply "

    def key(self, ply: int) -> str:
        """Return the key of a position in the journal."""
        return f"{self._prefix}{ply}"

    def ply(self, key: str) -> int:
        """Return the ply of such a key."""
        return int(key.removeprefix(self._prefix))


def _works(
    inputs: Sequence[Input], limits: Limits, older: OlderResults | None, under_way: _UnderWay
) -> Iterator[Work[_GameEntry, PositionAnswer]]:
    """Each game by itself, its positions from the last to the first. under_way: is told where each of them is."""
    count = 0
    for file, one in enumerate(inputs, start=1):
        for work in read_games(one.source):
            count += 1
            entry = _GameEntry(file, work)
            yield Work(entry, _tasks(entry, limits, f"game {count}", under_way), _known(entry, older))


def _known(entry: _GameEntry, older: OlderResults | None) -> dict[str, PositionAnswer]:
    """What there is already, by key."""
    if older is None or not entry.work.readable:
        return {}
    game = entry.work.game
    found = older.of_game(game.board(), game.mainline_moves())
    return {entry.key(ply): answer_of(one) for ply, one in found.items() if one.best is not None}


def _tasks(entry: _GameEntry, limits: Limits, game: str, under_way: _UnderWay) -> Iterator[Task]:
    for place in positions(entry.work):
        key, board = entry.key(place.ply), place.board
        under_way[key] = (f"{game}, {board.fullmove_number}{'.' if board.turn else '...'}", board.turn)
        yield position_task(key, board, limits, place.line)
