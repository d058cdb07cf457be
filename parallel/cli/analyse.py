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
    from psearch.analysis.analyser import Analyser
    from psearch.analysis.journal import AnalysisJournal
    from psearch.analysis.output import Output
    from psearch.analysis.pgn import GameTasks, Tally
    from psearch.notation.epd import SuitePosition
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
    if is_epd(options.file, source.text):
        return _analyse_epd(source, options, signals)
    if options.json:
        refuse("--json is for EPD; a PGN stays a PGN")
    return _analyse_pgn(source, options, signals)


def _check_out(file: str, out: str) -> None:
    """The input must stay as it is: a journal is only good for the input that it was made from."""
    from psearch.analysis.output import place_of
    from psearch.results import PsearchError

    try:
        place_of(out)
        same = Path(out).exists() and Path(file).exists() and Path(out).samefile(file)
    except (OSError, ValueError) as error:
        raise PsearchError(f"cannot write {out}: {getattr(error, 'strerror', None) or error}") from None
    if same:
        raise PsearchError(f"--out {out} is the input itself: choose another name")


def is_epd(file: str, text: str) -> bool:
    """By the name, else by the first line that says something: a position has eight ranks."""
    suffix = Path(file).suffix.lower()
    if suffix in (".epd", ".fen", ".pgn"):
        return suffix != ".pgn"
    for line in text.splitlines():
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
    from psearch.analysis.journal import AnalysisJournal
    from psearch.analysis.output import Output, place_of

    how = search_options(options)
    with ExitStack() as stack:
        place = place_of(options.out)
        journal: AnalysisJournal | None = None
        if place is not None:
            # the first of all, because its lock keeps a second run away from the other files
            journal = stack.enter_context(AnalysisJournal(Path(f"{place}.journal"), _about(source, options)))
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
        )
        yield analyser, output, progress


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
    from psearch.analysis.epd import Table, Verdict, json_object, summarise, summary_text
    from psearch.notation.epd import parse_suite

    suite = parse_suite(source)
    verdicts: list[Verdict] = []
    table = Table(suite)

    def result_of(verdict: Verdict) -> str:
        return json.dumps(json_object(verdict)) + "\n" if options.json else table.row(verdict)

    def summary() -> str:
        figures = summarise(verdicts, len(suite))
        return json.dumps({"summary": figures}) + "\n" if options.json else "\n" + summary_text(figures)

    searched = sum(any(position.board.legal_moves) for position in suite)
    with _session(source, options, signals, searched) as (analyser, output, progress):
        try:
            if not options.json:
                _put(table.head(), output, progress)
            for position in suite:
                verdict = _verdict(position, analyser)
                verdicts.append(verdict)
                progress.say(_standing(verdicts))
                _put(result_of(verdict), output, progress)
        except Stopped:
            progress.close()
            if analyser.journal is None:
                output.write(summary())
            _report_interruption(analyser, searched)
            return signals.exit_status
        progress.close()
        output.write(summary())
        _finish(analyser, output)
        if analyser.journal is not None:
            say(summary_text(summarise(verdicts, len(suite))).rstrip())
    return 0


def _verdict(position: SuitePosition, analyser: Analyser) -> Any:
    """Each position by itself: what was searched before must not help."""
    from psearch.analysis.epd import judge

    if not any(position.board.legal_moves):
        return judge(position, None)
    analyser.forget()
    return judge(position, analyser.answer(f"line {position.line}", position.board))


def _standing(verdicts: list[Any]) -> str:
    scored = sum(verdict.position.scored for verdict in verdicts)
    return f"solved {sum(verdict.solved_by is not None for verdict in verdicts)}/{scored}" if scored else ""


# -- PGN -------------------------------------------------------------------------------------------------------------


def _analyse_pgn(source: Source, options: argparse.Namespace, signals: Signals) -> int:
    from psearch.analysis.analyser import Stopped
    from psearch.analysis.pgn import Tally, read_games

    total, problems = _survey(source)
    tally = Tally()
    with _session(source, options, signals, total) as (analyser, output, progress):
        for problem in problems[:_MOST_PROBLEMS]:
            complain(problem)
        if len(problems) > _MOST_PROBLEMS:
            complain(f"{source.name}: {len(problems) - _MOST_PROBLEMS:,} more games like these")
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
    return EXIT_WRONG if problems else 0


def _survey(source: Source) -> tuple[int, list[str]]:
    """How many positions there are to search, and what is wrong with which game."""
    from psearch.analysis.pgn import read_games
    from psearch.results import PsearchError
    from psearch.terminal.status import StatusLine

    games = positions = 0
    problems: list[str] = []
    with StatusLine(only_terminal=True) as status:
        for work in read_games(source):
            games += 1
            positions += sum(1 for _ in work.tasks())
            if work.problem is not None:
                problems.append(f"{source.name}, game {work.number}: {work.problem.text}; {work.problem.consequence}")
            status(f"reading {source.name}: {games:,} games, {positions:,} positions")
    if not positions:
        raise PsearchError(problems[0] if problems else f"{source.name} has no game with moves")
    return positions, problems


def _annotated(work: GameTasks, analyser: Analyser, tally: Tally) -> str:
    """Search a game's positions, from the last to the first, and write the answers into it."""
    from psearch.analysis.pgn import annotate

    analyser.forget()
    answers = {task.ply: analyser.answer(f"game {work.number} ply {task.ply}", task.board) for task in work.tasks()}
    return annotate(work, answers, tally)
