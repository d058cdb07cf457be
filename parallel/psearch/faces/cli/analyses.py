"""Analyses suites, games and JSON lines for `psearch analyse`.

All three run in a session, which owns the output, the journal, the worker pool and the progress bar.
"""

from __future__ import annotations

import argparse
import itertools
import json
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import chess
import chess.engine

from psearch.arena.control_groups import usable_cores
from psearch.batch.analysis import games
from psearch.batch.analysis.analyser import Analyser, Stopped, Work
from psearch.batch.analysis.analysis_files import AnalysisJournal, Asked, OlderResults, Output, place_of, read_asked
from psearch.batch.analysis.reviews import game_tasks, reviewed
from psearch.batch.analysis.suite_results import (
    SuiteSummary,
    SuiteTable,
    Survey,
    Verdict,
    json_object,
    judge,
    summary_text,
)
from psearch.batch.analysis.tables import MOVE, POSITION, columns_of
from psearch.batch.positions.many import PositionResult, useful_hash_mb
from psearch.batch.positions.position_pool import WorkerSettings, make_pool
from psearch.batch.positions.task import Answer, Pause, Task
from psearch.defaults import JOB_HASH_MB, MAX_THREADS, REVIEW_MOVETIME_MS
from psearch.faces.cli.arguments import check_hash, limits_of, search_options
from psearch.faces.cli.kernels import prepare_kernels
from psearch.faces.cli.output import EXIT_WRONG, complain, say
from psearch.faces.cli.signals import Signals
from psearch.options import SearchOptions
from psearch.results import Limits, PsearchError, relative_text
from psearch.scheduler.scheduler_entries import SEARCH
from psearch.settings import SEARCH_SETTINGS, SETTINGS, Face
from psearch.terminal.live_display import AnalysisProgress
from psearch.terminal.status import StatusLine
from psearch.terminal.streams import is_terminal, printable
from psearch.text.epd_text import SuitePosition, read_positions
from psearch.text.pgn_text import PgnGame, read_games
from psearch.text.source import Source, Stream, read_source
from psearch.text.values import counted
from psearch.version import __version__

T = TypeVar("T")
_MOST_PROBLEMS = 10
"""Most problems that are reported one by one."""
_ALWAYS = ("policy", "pruning")
"""Settings that a journal names even if they have their default values."""


class Input(NamedTuple):
    """Input file: the name that the user gave, and the contents."""

    name: str
    source: Source


@dataclass
class Problems:
    """Collects the problems of the input; reports the first ones in full and counts the others."""

    count: int = 0
    texts: list[str] = field(default_factory=list)

    def add(self, text: str) -> None:
        """Count a problem."""
        self.count += 1
        if self.count <= _MOST_PROBLEMS:
            self.texts.append(text)

    def lines(self) -> list[str]:
        """Return a line for each problem, and one with the number of those not listed."""
        more = self.count - len(self.texts)
        return [*self.texts, f"{more:,} more like these"] if more else self.texts

    def refuse(self, otherwise: str) -> None:
        """Report all lines but the last, and raise PsearchError with that one, or with `otherwise` if there is none."""
        *others, last = self.lines() or [otherwise]
        for problem in others:
            complain(problem)
        raise PsearchError(last)


class AnalysisSession:
    """Running analysis. total: positions that need a search, including those in the journal; None if unknown."""

    def __init__(self, options: argparse.Namespace, total: int | None) -> None:
        self.limits = limits_of(options, REVIEW_MOVETIME_MS)
        self.older = None if options.merge is None else OlderResults(read_source(options.merge))
        self.total = total
        self.journal: AnalysisJournal | None = None
        """Journal of finished positions; only if the result goes to a file."""
        self.output: Output
        self.progress: AnalysisProgress
        self.analyser: Analyser
        self._is_interrupted = False

    def complain(self, message: str) -> None:
        """Print a line on stderr, above the progress bar."""
        with self.progress.aside(sys.stderr):
            complain(message)

    def answered(self, works: Iterable[Work[T] | Pause], awaited: int | None = None) -> Iterator[Work[T]]:
        """Yield each item with its answers, like `Analyser.answered`, but end quietly on a signal."""
        try:
            yield from self.analyser.answered(works, awaited)
        except Stopped:
            self._is_interrupted = True

    def put(self, text: str) -> None:
        """Add text to the result. The bar is hidden meanwhile if both are on the terminal."""
        with self.progress.aside(None if self.journal is not None else sys.stdout):
            self.output.write(text)

    def kept(self) -> str:
        """Return a phrase that says how many positions the journal holds."""
        assert self.journal is not None
        of = f" of {self.total:,}" if self.total is not None else ""
        return f"{len(self.journal):,}{of} positions are in {self.journal.path}"

    def end(self, summary: str = "") -> bool:
        """Finish the result and remove the journal. After an interruption report what was kept, and return False."""
        self.progress.close()
        if not self._is_interrupted or self.journal is None:
            self.put(summary)
        if self._is_interrupted:
            kept = f"; {self.kept()}: the same command continues from there" if self.journal else ""
            complain(f"interrupted{kept}")
            return False
        self.output.commit()
        if self.journal is not None:
            self.journal.remove()
        return True


@contextmanager
def open_session(
    inputs: Sequence[Input],
    options: argparse.Namespace,
    signals: Signals,
    total: int | None,
    columns: Sequence[str],
    is_emptied: bool = True,
) -> Iterator[AnalysisSession]:
    """Open output, journal, pool and bar. columns: those of a table; is_emptied: whether the table of the search is
    emptied before each position."""
    how = search_options(options)
    session = AnalysisSession(options, total)
    hash_mb = options.hash or JOB_HASH_MB
    if options.hash is None and is_emptied and session.limits.nodes is not None:
        # emptying a table larger than the search can use wastes time
        hash_mb = useful_hash_mb(Limits(nodes=session.limits.nodes))
    jobs = options.jobs
    if jobs is None:
        jobs = MAX_THREADS if options.on else max(1, min(MAX_THREADS, usable_cores() // (options.threads or 1)))
    if options.on is None:
        check_hash(hash_mb, jobs if total is None else max(1, min(jobs, total)))
    report: list[Callable[[str], None]] = [complain]
    with ExitStack() as stack:
        place = place_of(options.out)
        if place is not None:
            # opened first: its lock protects the other files from a second run
            about = _about(inputs, options, how, hash_mb)
            session.journal = stack.enter_context(AnalysisJournal(Path(f"{place}.journal"), about))
        session.output = stack.enter_context(Output(place, columns))
        if options.on is None:
            prepare_kernels(how.kernels.group(SEARCH))
        done = len(session.journal) if session.journal is not None else 0
        workers = jobs if total is None else max(1, min(jobs, total - done))
        settings = WorkerSettings(options.threads or 1, hash_mb, how, options.syzygy or "")
        pool = make_pool(workers, settings, options.on, lambda note: report[0](note))
        stack.callback(pool.close)
        if done:
            complain(f"{session.kept()}: continuing from there")
        progress = session.progress = stack.enter_context(AnalysisProgress(total, pool.work_done))
        report[0] = session.complain
        signals.searching = True

        def is_stopped() -> bool:
            progress.tick()
            return signals.control.is_stopped

        session.analyser = Analyser(
            pool,
            is_stopped,
            session.journal,
            progress.advance,
            session.complain,
            0 if options.threads is not None or options.on is not None else jobs,
            options.threads == 1 and session.limits.movetime_ms is None,
        )
        yield session
        progress.close()
        if pool.work_done():
            complain(f"positions by machine: {pool.work_done()}")


def _about(inputs: Sequence[Input], options: argparse.Namespace, how: SearchOptions, hash_mb: int) -> dict[str, Any]:
    """Return everything that the answers depend on. With one thread per job the number of jobs does not matter."""
    limits = {name: value for name, value in asdict(limits_of(options, REVIEW_MOVETIME_MS)).items() if value}
    named = (one for one in SEARCH_SETTINGS if not one.is_path)  # the contents of files are recorded below
    settings = {one.field: getattr(options, one.field) for one in named if Face.COMMAND_LINE in one.faces}
    return {
        "input": [one.source.sha256 for one in inputs],
        **limits,
        "threads": options.threads or "1, and others at the end",
        "hash": hash_mb,
        **({"multipv": options.multipv} if options.multipv > 1 else {}),
        **{name: value for name, value in settings.items() if name in _ALWAYS or value != SETTINGS[name].default},
        **({"rules file" if how.with_ else "policy file": how.kernels.digest} if how.own is not None else {}),
        "network": how.read_network().name,
        **({"syzygy": options.syzygy} if options.syzygy else {}),
        "psearch": __version__,
    }


class _Entry(NamedTuple):
    """Position of a suite."""

    file: int
    """Number of the input file, from 1."""
    position: SuitePosition

    @property
    def key(self) -> str:
        """Return the position's key in the journal."""
        return f"file {self.file} line {self.position.line}"


def analyse_suites(inputs: Sequence[Input], options: argparse.Namespace, signals: Signals) -> int:
    """Analyse suites, print a table or JSON with a summary, and return the exit status."""
    problems = Problems()
    survey = Survey.of(itertools.chain.from_iterable(_positions_of(one, problems) for one in inputs))
    figures = SuiteSummary(kept=None if options.merge is None else 0)
    shown = options.out is None and is_terminal(sys.stdout)
    table = SuiteTable(survey, shutil.get_terminal_size().columns if shown else None)

    failed = 0
    columns = ["file", "line", "result", "points", *columns_of(POSITION, options.multipv), "error"]
    with open_session(inputs, options, signals, survey.searchable, columns) as session:
        for problem in problems.lines():
            session.complain(problem)
        if not options.json:
            session.put(table.head())
        number = 0
        for done in session.answered(_positions(inputs, session, options)):
            entry = done.item
            if len(inputs) > 1 and not options.json:
                for one in inputs[number : entry.file]:
                    session.put(f"{printable(one.name)}:\n")
            number = entry.file
            name = inputs[number - 1].name
            verdict = judge(entry.position, done.answers.get(entry.key), done.problems.get(entry.key))
            figures.add(verdict, name, done.from_older)
            session.progress.say(figures.solved_text)
            if session.output.table is not None:
                session.output.table.add([_row(name, verdict, entry, session)])
            else:
                session.put(json.dumps(json_object(verdict, name)) + "\n" if options.json else table.row(verdict))
            if verdict.problem is not None:
                failed += 1
                session.complain(f"{entry.position.name}: {verdict.problem}")
        facts = figures.figures(survey.positions)
        if not session.end(json.dumps({"summary": facts}) + "\n" if options.json else "\n" + summary_text(facts)):
            return signals.exit_status
        if session.journal is not None:
            say(summary_text(facts).rstrip())
        if problems.count:
            say(f"{counted(problems.count, 'line')} left out")
    return EXIT_WRONG if failed or problems.count else 0


def _positions(
    inputs: Sequence[Input], session: AnalysisSession, options: argparse.Namespace
) -> Iterator[Work[_Entry]]:
    """Yield each position as separate work, so that earlier searches cannot help it."""
    for file, one in enumerate(inputs, start=1):
        for position in read_positions(one.source, lambda problem: None):
            entry = _Entry(file, position)
            if any(position.board.legal_moves):
                task = Task.of_board(entry.key, position.board, session.limits, multipv=options.multipv)
                yield _work(entry, task, session, position.board.fen())
            else:
                yield Work(entry, [])


def _row(name: str, verdict: Verdict, entry: _Entry, session: AnalysisSession) -> dict[str, Any]:
    """Return the row of a position of a suite."""
    position = verdict.position
    facts = {"file": name, "line": position.line, "result": verdict.result}
    points = verdict.points if position.points else None
    task = Task.of_board(entry.key, position.board, session.limits)
    found = PositionResult(position.name, 0, verdict.problem, "", task, verdict.answer)
    return {**facts, "points": points, **found.as_row()}


def _positions_of(one: Input, problems: Problems) -> Iterator[SuitePosition]:
    before = problems.count
    empty = True
    for position in read_positions(one.source, problems.add):
        empty = False
        yield position
    if empty:
        otherwise = f"{one.source.name} has no positions"
        (problems if problems.count > before else Problems()).refuse(otherwise)


def _work(entry: T, task: Task, session: AnalysisSession, fen: str | None = None) -> Work[T]:
    """Return the work for one position, with its older result, if there is one."""
    known = None if session.older is None else session.older.of_position(task, fen)
    return Work(entry, [task], {} if known is None else {str(task.id): known})


class _GameEntry(NamedTuple):
    """Game of a PGN file."""

    number: int
    """Number among all games, from 1."""
    file: int
    """Number of the input file, from 1."""
    work: PgnGame

    @property
    def prefix(self) -> str:
        """Return the prefix of the journal keys of its positions; the ply follows."""
        return f"file {self.file} game {self.work.number} ply "

    def ply(self, key: str) -> int:
        """Return the ply of a journal key."""
        return int(key.removeprefix(self.prefix))


def analyse_games(inputs: Sequence[Input], options: argparse.Namespace, signals: Signals) -> int:
    """Analyse games, write annotated PGN or JSON, summarize each player, and return the exit status."""
    sums, problems = _survey(inputs)
    players = games.Players()
    tally = games.Tally(kept=None if options.merge is None else 0)
    failed = 0
    columns = columns_of(MOVE, options.multipv)
    with open_session(inputs, options, signals, sums["positions"], columns, is_emptied=False) as session:

        def show(entry: _GameEntry, key: str, answer: Answer) -> None:
            """Show the latest position and its score from White's point of view."""
            begin = entry.work.game.board()
            half_moves = 2 * begin.fullmove_number + (not begin.turn) + entry.ply(key)
            is_whites = half_moves % 2 == 0
            score = chess.engine.PovScore(answer.estimate[0], is_whites).white()
            move = f"{half_moves // 2}{'.' if is_whites else '...'}"
            session.progress.say(f"game {entry.number}, {move} {relative_text(score, 'exact')}")

        session.analyser.on_found = show
        for problem in problems.lines():
            session.complain(problem)
        for done in session.answered(_games(inputs, session, options)):
            entry = done.item
            name = inputs[entry.file - 1].name
            judged = reviewed(done, entry.work, entry.prefix, options.marks, session.limits)
            for ply, problem in judged.problems.items():
                failed += 1
                session.complain(f"{name}, game {entry.work.number}, ply {ply}: {problem}")
            tally.add(judged, done.from_older)
            if session.output.table is not None:
                session.output.table.add({"file": name, **row} for row in judged.to_rows())
            elif options.json:
                session.put(json.dumps(games.game_object(judged, name)) + "\n")
            else:
                session.put(judged.to_pgn(options.fresh_marks, options.wdl))
            if judged.moves:
                title = games.game_title(judged, name if len(inputs) > 1 else None)
                session.progress.show_table(title, games.PLAYER_COLUMNS, games.player_rows(judged))
                players.add(judged)
        facts = {"summary": games.games_summary(tally, sums["games"])}
        if not session.end(json.dumps(facts) + "\n" if options.json else ""):
            return signals.exit_status
        if rows := players.rows():
            session.progress.show_table("all games:", games.TOTAL_COLUMNS, rows)
        cut = f"; {counted(sums['broken'], 'game')} could not be read as written" if sums["broken"] else ""
        say(f"{tally.text()}{cut}")
    return EXIT_WRONG if sums["broken"] or failed else 0


def _survey(inputs: Sequence[Input]) -> tuple[Counter[str], Problems]:
    sums: Counter[str] = Counter()
    problems = Problems()
    with StatusLine(only_terminal=True) as status:
        for _, source in inputs:
            before = sums["positions"]
            for work in read_games(source):
                sums.update(games=1, positions=games.count_positions(work), broken=bool(work.problems))
                for problem in work.problems:
                    place = f"{source.name}, game {work.number}, line {problem.line}"
                    problems.add(f"{place}: {problem.text}; {problem.consequence}")
                found = f"{counted(sums['games'], 'game')}, {counted(sums['positions'], 'position')}"
                status(f"reading {source.name}: {found}")
            if sums["positions"] == before:
                problems.refuse(f"{source.name} has no game with moves")
    return sums, problems


def _games(
    inputs: Sequence[Input], session: AnalysisSession, options: argparse.Namespace
) -> Iterator[Work[_GameEntry]]:
    """Yield each game as separate work, with its positions from the last to the first."""
    works = ((file, work) for file, one in enumerate(inputs, start=1) for work in read_games(one.source))
    for number, (file, work) in enumerate(works, start=1):
        entry = _GameEntry(number, file, work)
        known: dict[str, Answer] = {}
        if session.older is not None and work.readable:
            found = session.older.of_game(work.game.board(), work.game.mainline_moves(), options.multipv)
            known = {f"{entry.prefix}{ply}": answer for ply, answer in found.items() if answer.best is not None}
        yield Work(entry, game_tasks(entry.work, entry.prefix, session.limits, options.multipv), known)


def analyse_lines(
    inputs: Sequence[Input], options: argparse.Namespace, signals: Signals, stream: Stream | None = None
) -> int:
    """Analyse JSON lines, one object a line, and return the exit status. stream: read from this pipe instead, and write
    each result as soon as all earlier ones are written; an unreadable line ends the analysis after them."""
    limits, total, have_limits = limits_of(options, REVIEW_MOVETIME_MS), 0, False
    for one in inputs:
        before = total
        for asked in read_asked(one.source, 1, limits, options.multipv):
            total += 1
            have_limits |= asked is not None and asked.task.limits != limits
        if total == before:
            raise PsearchError(f"{one.source.name} has no positions")
    sources: list[Source | Stream] = [stream] if stream is not None else [one.source for one in inputs]
    problems: list[PsearchError] = []

    def works() -> Iterator[Work[Asked] | Pause]:
        try:
            for file, source in enumerate(sources, start=1):
                for asked in read_asked(source, file, limits, options.multipv):
                    yield Pause.INPUT if asked is None else _work(asked, asked.task, session)
        except PsearchError as error:
            problems.append(error)

    sums: Counter[str] = Counter()
    columns = [*columns_of(POSITION, options.multipv), "error"]
    # the limits of a line may need a larger table
    with open_session(inputs, options, signals, None if stream else total, columns, not have_limits) as session:
        for done in session.answered(works(), None if stream is None else stream.fileno()):
            task = done.item.task
            key = str(task.id)
            sums.update(positions=1, kept=done.from_older, failed=bool(done.problems))
            result = PositionResult(done.item.id, 0, done.problems.get(key), "", task, done.answers.get(key))
            if session.output.table is not None:
                session.output.table.add([result.as_row()])
            else:
                session.put(json.dumps(result.as_json()) + "\n")
        if not session.end():
            return signals.exit_status
    if problems:
        raise problems[0]
    if stream is not None and not sums["positions"]:
        raise PsearchError(f"{stream.name} has no positions")
    if session.journal is not None:
        kept = f", {sums['kept']:,} kept from older results" if options.merge is not None else ""
        failed = f", {sums['failed']:,} failed" if sums["failed"] else ""
        say(f"{counted(sums['positions'], 'position')}{kept}{failed}")
    return EXIT_WRONG if sums["failed"] else 0
