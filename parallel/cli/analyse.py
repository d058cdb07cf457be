"""`psearch analyse`: a test suite or a collection of games, from a file to a file.

numba is imported only once the input is known to be good.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psearch.cli.arguments import add_search_options, check_hash, limits_of, search_options
from psearch.cli.exit_status import EXIT_WRONG
from psearch.cli.kernels import prepare_kernels
from psearch.cli.output import complain, refuse, say
from psearch.cli.signals import Signals
from psearch.version import __version__

if TYPE_CHECKING:
    import chess

    from psearch.analysis.analyser import Analyser, Answer
    from psearch.analysis.journal import AnalysisJournal
    from psearch.analysis.output import Output
    from psearch.analysis.pgn import Tally
    from psearch.notation.epd import SuitePosition
    from psearch.notation.pgn import PgnGame
    from psearch.notation.source import Source
    from psearch.terminal.analysis_display import AnalysisProgress

DEFAULT_MOVETIME_MS = 1_000
"""for each position"""
_MOST_PROBLEMS = 10
"""broken games that are reported one by one"""

DESCRIPTION = f"""\
Search every position of a file, {DEFAULT_MOVETIME_MS // 1000} second each if no limit is given.

EPD: a table of what was found, scored by `bm`, `am` and the points of the Strategic Test
Suite, with the time from which the right move was preferred for good. PGN: the games with
[%eval] comments, and ?!, ? or ?? and a better line where a move cost much.

The result goes to stdout as it comes, or with --out to FILE once it is complete. Until
then FILE.journal holds every finished position: after Ctrl-C or a crash the same command
goes on from there. `-` is stdin or stdout."""

EXAMPLES = """\
examples:
  psearch analyse --movetime 1000 wac.epd
  psearch analyse --threads 2 --depth 12 --json --out wac.jsonl wac.epd
  psearch analyse --nodes 1000000 --out annotated.pgn games.pgn
  psearch analyse --depth 10 - < game.pgn > annotated.pgn"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Of `psearch analyse`."""
    parser.add_argument("file", nargs="?", metavar="FILE", help="EPD or PGN; `-` reads standard input")
    parser.add_argument("--out", metavar="FILE", help="write the result here when it is complete")
    add_search_options(parser, "for each position")
    parser.add_argument("--json", action="store_true", help="EPD: one JSON object a line, the summary last")


def run(options: argparse.Namespace, signals: Signals) -> int:
    """Read everything, refuse what is wrong, then search."""
    from psearch.notation.source import STANDARD_STREAM, read_source

    if options.file is None:
        refuse("no file given: an EPD or PGN file, or - (see psearch analyse --help)")
    if options.out is not None and options.out != STANDARD_STREAM:
        _check_out(options.file, options.out)
    check_hash(options.hash)
    source = read_source(options.file)
    if is_epd(options.file, source):
        return _analyse_epd(source, options, signals)
    if options.json:
        refuse("--json is for EPD; a PGN stays a PGN")
    return _analyse_pgn(source, options, signals)


def _check_out(file: str, out: str) -> None:
    """The input must stay as it is: a journal is only good for the input that it was made from. So must what is not
    ours."""
    from psearch.analysis.output import check_place, place_of
    from psearch.results import PsearchError

    try:
        place = place_of(out)
        same = Path(out).exists() and Path(file).exists() and Path(out).samefile(file)
    except (OSError, ValueError) as error:
        raise PsearchError(f"cannot write {out}: {getattr(error, 'strerror', None) or error}") from None
    if same:
        raise PsearchError(f"--out {out} is the input itself: choose another name")
    if place is not None:
        check_place(place)


def is_epd(file: str, source: Source) -> bool:
    """By the name, else by the first line that says something: a position has eight ranks."""
    suffix = Path(file).suffix.lower()
    if suffix in (".epd", ".fen", ".pgn"):
        return suffix != ".pgn"
    for _, line in source.lines():
        if line.strip() and line.lstrip()[0] not in "#;%":
            return line.split()[0].count("/") == 7
    return True


# -- both kinds ------------------------------------------------------------------------------------------------------


def _about(source: Source, options: argparse.Namespace) -> dict[str, Any]:
    """What the answers depend on."""
    from dataclasses import asdict

    limits = {name: value for name, value in asdict(limits_of(options, DEFAULT_MOVETIME_MS)).items() if value}
    return {
        "input": source.sha256,
        **limits,
        "threads": options.threads,
        "hash": options.hash,
        "policy": options.policy,
        "pruning": options.pruning,
        "psearch": __version__,
    }


@contextmanager
def _session(
    source: Source, options: argparse.Namespace, signals: Signals, total: int
) -> Iterator[tuple[Analyser, Output, AnalysisProgress]]:
    """Output, journal, engine and progress bar, opened in the order in which they can fail."""

    from psearch.analysis.analyser import Analyser
    from psearch.analysis.journal import AnalysisJournal, check_answer
    from psearch.analysis.output import Output, place_of

    how = search_options(options)
    with ExitStack() as stack:
        place = place_of(options.out)
        journal: AnalysisJournal | None = None
        if place is not None:
            # the first of all, because its lock keeps a second run away from the other files
            journal = stack.enter_context(
                AnalysisJournal(Path(f"{place}.journal"), _about(source, options), check_answer)
            )
        output = stack.enter_context(Output(place))
        prepare_kernels()

        from psearch.processes.supervisor import Supervisor
        from psearch.terminal.analysis_display import AnalysisProgress

        engine = stack.enter_context(Supervisor(threads=options.threads, hash_mb=options.hash))
        if journal is not None and len(journal):
            complain(f"{len(journal):,} of {total:,} positions are in {journal.path}: going on from there")
        progress = stack.enter_context(AnalysisProgress(total))
        signals.searching = True
        analyser = Analyser(
            engine,
            limits_of(options, DEFAULT_MOVETIME_MS),
            how,
            signals.control,
            journal,
            progress.show,
            progress.advance,
            complain,
        )
        yield analyser, output, progress


def _answer(analyser: Analyser, key: str, board: chess.Board) -> Answer:
    """The answer for a position. Raises PsearchError when the journal has one that is of another position."""
    from psearch.analysis.journal import check_moves
    from psearch.results import PsearchError

    kept = analyser.journal is not None and key in analyser.journal
    answer = analyser.answer(key, board)
    if kept and analyser.journal is not None:
        try:
            check_moves(board, answer.best, answer.pv, [choice.move for choice in answer.choices])
        except ValueError as error:
            raise PsearchError(f"{analyser.journal.path}: not an answer for {key}: {error}") from None
    return answer


def _put(text: str, output: Output, progress: AnalysisProgress) -> None:
    """Add to the result; the bar makes room, because stdout may be the same terminal."""
    with progress.aside():
        output.write(text)


def _finish(analyser: Analyser, output: Output) -> None:
    """Everything is searched: the result to its place, and then the journal away."""
    output.commit()
    if analyser.journal is not None:
        analyser.journal.remove()


def _report_interruption(analyser: Analyser, total: int) -> None:
    if analyser.journal is not None and len(analyser.journal):
        count = f"{len(analyser.journal):,} of {total:,} positions are in {analyser.journal.path}"
        complain(f"interrupted; {count}: the same command goes on from there")
    else:
        complain("interrupted")


# -- EPD -------------------------------------------------------------------------------------------------------------


def _analyse_epd(source: Source, options: argparse.Namespace, signals: Signals) -> int:
    from psearch.analysis.analyser import Stopped
    from psearch.analysis.epd import Summary, Survey, Table, Verdict, json_object, summary_text
    from psearch.notation.epd import read_positions
    from psearch.results import PsearchError

    survey = Survey.of(read_positions(source))
    if not survey.positions:
        raise PsearchError(f"{source.name} has no positions")
    figures = Summary()
    table = Table(survey)

    def result_of(verdict: Verdict) -> str:
        return json.dumps(json_object(verdict)) + "\n" if options.json else table.row(verdict)

    def summary() -> str:
        facts = figures.figures(survey.positions)
        return json.dumps({"summary": facts}) + "\n" if options.json else "\n" + summary_text(facts)

    with _session(source, options, signals, survey.searchable) as (analyser, output, progress):
        try:
            if not options.json:
                _put(table.head(), output, progress)
            for position in read_positions(source):
                verdict = _verdict(position, analyser)
                figures.add(verdict)
                progress.say(figures.standing)
                _put(result_of(verdict), output, progress)
        except Stopped:
            progress.close()
            if analyser.journal is None:
                output.write(summary())
            _report_interruption(analyser, survey.searchable)
            return signals.exit_status
        progress.close()
        output.write(summary())
        _finish(analyser, output)
        if analyser.journal is not None:
            say(summary_text(figures.figures(survey.positions)).rstrip())
    return 0


def _verdict(position: SuitePosition, analyser: Analyser) -> Any:
    """Each position by itself: what was searched before must not help."""
    from psearch.analysis.epd import judge

    if not any(position.board.legal_moves):
        return judge(position, None)
    analyser.forget()
    return judge(position, _answer(analyser, f"line {position.line}", position.board))


# -- PGN -------------------------------------------------------------------------------------------------------------


def _analyse_pgn(source: Source, options: argparse.Namespace, signals: Signals) -> int:
    from psearch.analysis.analyser import Stopped
    from psearch.analysis.pgn import Tally
    from psearch.notation.pgn import read_games

    total, problems, broken = _survey(source)
    tally = Tally()
    with _session(source, options, signals, total) as (analyser, output, progress):
        for problem in problems:
            complain(problem)
        if broken > len(problems):
            complain(f"{source.name}: {broken - len(problems):,} more games like these")
        try:
            for work in read_games(source):
                progress.say(f"game {work.number}")
                _put(_annotated(work, analyser, tally), output, progress)
        except Stopped:
            progress.close()
            _report_interruption(analyser, total)
            return signals.exit_status
        progress.close()
        _finish(analyser, output)
        say(tally.text())
    return EXIT_WRONG if broken else 0


def _survey(source: Source) -> tuple[int, list[str], int]:
    """How many positions there are to search, what is wrong with the first games that are broken, how many are."""
    from psearch.analysis.pgn import count_tasks
    from psearch.notation.pgn import read_games
    from psearch.results import PsearchError
    from psearch.terminal.status import StatusLine

    games = positions = 0
    problems: list[str] = []
    broken = 0
    with StatusLine(only_terminal=True) as status:
        for work in read_games(source):
            games += 1
            positions += count_tasks(work)
            if work.problem is not None:
                broken += 1
                if broken <= _MOST_PROBLEMS:
                    what = f"{work.problem.text}; {work.problem.consequence}"
                    problems.append(f"{source.name}, game {work.number}: {what}")
            status(f"reading {source.name}: {games:,} games, {positions:,} positions")
    if not positions:
        raise PsearchError(problems[0] if problems else f"{source.name} has no game with moves")
    return positions, problems, broken


def _annotated(work: PgnGame, analyser: Analyser, tally: Tally) -> str:
    """Search a game's positions, from the last to the first, and write the answers into it."""
    from psearch.analysis.pgn import annotate, tasks

    analyser.forget()
    answers = {task.ply: _answer(analyser, f"game {work.number} ply {task.ply}", task.board) for task in tasks(work)}
    return annotate(work, answers, tally)
