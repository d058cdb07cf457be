"""`psearch analyse` of JSON lines: positions in, results out, one object a line."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from psearch.batch.analysis.analyser import Work
from psearch.batch.analysis.analysis_files import Asked, OlderResults, asked_by, read_asked
from psearch.batch.positions.task import Pause, result_object
from psearch.faces.cli.analysis_session import (
    DEFAULT_MOVETIME_MS,
    AnalysisSession,
    Input,
    hash_of,
    older_results,
    open_session,
)
from psearch.faces.cli.arguments import limits_of
from psearch.faces.cli.exit_status import EXIT_WRONG
from psearch.faces.cli.output import say
from psearch.results import Limits, PsearchError
from psearch.text.values import counted

if TYPE_CHECKING:
    from psearch.faces.cli.signals import Signals
    from psearch.text.source import Stream


def analyse_lines(inputs: Sequence[Input], options: argparse.Namespace, signals: Signals) -> int:
    """Analyse JSON lines and return the exit status."""
    limits = limits_of(options, DEFAULT_MOVETIME_MS)
    older = older_results(options)
    total = sum(_count(one, limits) for one in inputs)
    asked = (one for file, source in enumerate(inputs, start=1) for one in read_asked(source.source, file, limits))
    works = (_work(one, older) for one in asked)
    with open_session(inputs, options, signals, total, hash_of(options, is_emptied=True)) as session:
        sums = _put_results(session, works)
        if not session.end():
            return signals.exit_status
    if session.has_journal:
        say(sums.text(older is not None))
    return EXIT_WRONG if sums.failed else 0


def analyse_stream(stream: Stream, options: argparse.Namespace, signals: Signals) -> int:
    """Analyse the JSON lines of a pipe, to standard output: each result as soon as it and those before it are there. A
    line that cannot be read ends it after the results of those before."""
    limits, older = limits_of(options, DEFAULT_MOVETIME_MS), older_results(options)
    problems: list[PsearchError] = []

    def works() -> Iterator[Work[Asked] | Pause]:
        try:
            for asked in asked_by(stream, limits):
                yield Pause.INPUT if asked is None else _work(asked, older)
        except PsearchError as error:
            problems.append(error)

    with open_session([], options, signals, None, hash_of(options, is_emptied=True)) as session:
        sums = _put_results(session, works(), stream.fileno())
        if not session.end():
            return signals.exit_status
    if problems:
        raise problems[0]
    if not sums.positions:
        raise PsearchError(f"{stream.name} has no positions")
    return EXIT_WRONG if sums.failed else 0


def _put_results(session: AnalysisSession, works: Iterable[Work[Asked] | Pause], awaited: int | None = None) -> _Sums:
    """Search everything and write the results."""
    sums = _Sums()
    for done in session.answered(works, awaited):
        key = str(done.item.task.id)
        sums.add(done)
        result = result_object(done.item.id, done.item.task, done.answers.get(key), done.problems.get(key))
        session.put(json.dumps(result) + "\n")
    return sums


@dataclass
class _Sums:
    positions: int = 0
    failed: int = 0
    kept: int = 0

    def add(self, done: Work[Asked]) -> None:
        self.positions += 1
        self.kept += done.from_older
        self.failed += bool(done.problems)

    def text(self, has_older: bool) -> str:
        words = [counted(self.positions, "position")]
        if has_older:
            words.append(f"{self.kept:,} kept from older results")
        if self.failed:
            words.append(f"{self.failed:,} failed")
        return ", ".join(words)


def _count(one: Input, limits: Limits) -> int:
    """Return how many lines there are. Raises PsearchError for a line that cannot be read, and when there is none."""
    count = sum(1 for _ in read_asked(one.source, 1, limits))
    if not count:
        raise PsearchError(f"{one.source.name} has no positions")
    return count


def _work(asked: Asked, older: OlderResults | None) -> Work[Asked]:
    known = older.of_position(asked.task) if older is not None else None
    return Work(asked, [asked.task], {} if known is None else {str(asked.task.id): known})
