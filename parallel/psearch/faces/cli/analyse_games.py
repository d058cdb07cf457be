"""`psearch analyse` of games: PGN with what was found, or JSON, and a summary of each player."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import chess
import chess.engine

from psearch.batch.analysis.analyser import Work
from psearch.batch.analysis.games import (
    PLAYER_COLUMNS,
    TOTAL_COLUMNS,
    Players,
    Tally,
    annotate,
    count_positions,
    game_object,
    game_title,
    games_summary,
    judge_game,
    player_rows,
    positions,
)
from psearch.batch.positions.task import Answer, Task
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
from psearch.text.pgn_text import PgnGame, read_games
from psearch.text.report import relative_text
from psearch.text.values import counted
from psearch.version import __version__

if TYPE_CHECKING:
    from psearch.batch.analysis.analysis_files import OlderResults
    from psearch.faces.cli.signals import Signals


def analyse_games(inputs: Sequence[Input], options: argparse.Namespace, signals: Signals) -> int:
    """Analyse games and return the exit status."""
    older = older_results(options)
    survey = _survey(inputs)
    players = Players()
    tally = Tally(kept=None if older is None else 0)
    annotator = f"psearch {__version__}, {limit_text(options)}"

    hash_mb = hash_of(options, is_emptied=False)
    failed = 0
    with open_session(inputs, options, signals, survey.positions, hash_mb) as session:

        def tell(entry: _GameEntry, key: str, answer: Answer) -> None:
            """Show which position was searched last, and its score seen from White."""
            begin = entry.work.game.board()
            half_moves = 2 * begin.fullmove_number + (not begin.turn) + entry.ply(key)
            is_whites = half_moves % 2 == 0
            score = chess.engine.PovScore(answer.estimate[0], is_whites).white()
            move = f"{half_moves // 2}{'.' if is_whites else '...'}"
            session.progress.say(f"game {entry.number}, {move} {relative_text(score, 'exact')}")

        session.analyser.on_found = tell
        for problem in survey.problems.told():
            complain_beside(session.progress, problem)
        for done in session.answered(_works(inputs, session.limits, older)):
            entry = done.item
            name = inputs[entry.file - 1].name
            judged = judge_game(entry.work, {entry.ply(key): answer for key, answer in done.answers.items()})
            for key, problem in done.problems.items():
                failed += 1
                place = f"{name}, game {entry.work.number}, ply {entry.ply(key)}"
                complain_beside(session.progress, f"{place}: {problem}")
            tally.add(judged, done.from_older)
            if options.json:
                session.put(json.dumps(game_object(judged, name)) + "\n")
            else:
                session.put(annotate(judged, annotator))
            if judged.moves:
                title = game_title(judged, name if len(inputs) > 1 else None)
                session.progress.show_table(title, PLAYER_COLUMNS, player_rows(judged))
                players.add(judged)
        facts = {"summary": games_summary(tally, survey.games)}
        if not session.end(json.dumps(facts) + "\n" if options.json else ""):
            return signals.exit_status
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

    number: int
    """of all games, from 1"""
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


def _works(inputs: Sequence[Input], limits: Limits, older: OlderResults | None) -> Iterator[Work[_GameEntry]]:
    """Yield each game by itself, its positions from the last to the first."""
    games = ((file, work) for file, one in enumerate(inputs, start=1) for work in read_games(one.source))
    for number, (file, work) in enumerate(games, start=1):
        entry = _GameEntry(number, file, work)
        yield Work(entry, _tasks(entry, limits), _known(entry, older))


def _tasks(entry: _GameEntry, limits: Limits) -> Iterator[Task]:
    for place in positions(entry.work):
        yield Task.of_board(entry.key(place.ply), place.board, limits, place.line)


def _known(entry: _GameEntry, older: OlderResults | None) -> dict[str, Answer]:
    """What there is already, by key."""
    if older is None or not entry.work.readable:
        return {}
    game = entry.work.game
    found = older.of_game(game.board(), game.mainline_moves())
    return {entry.key(ply): answer for ply, answer in found.items() if answer.best is not None}
