"""`psearch analyse` of JSON lines: positions in, results out, one object a line."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from psearch.batch.analysis.analyser import PositionAnswered, Stopped, Work
from psearch.batch.analysis.json_lines import RESULTS, Asked, asked_by, check_found, object_of, read_asked
from psearch.batch.analysis.older_results import OlderResults
from psearch.batch.positions.jobs import Found, Pause
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
from psearch.terminal.table import counted

if TYPE_CHECKING:
    from psearch.faces.cli.signals import Signals
    from psearch.text.source import Stream


def analyse_lines(inputs: Sequence[Input], options: argparse.Namespace, signals: Signals) -> int:
    """Analyse JSON lines and return the exit status."""
    limits = limits_of(options, DEFAULT_MOVETIME_MS)
    older = older_results(options)
    total = sum(_count(one, limits) for one in inputs)
    hash_mb = hash_of(options, is_emptied=True)
    asked = (one for file, source in enumerate(inputs, start=1) for one in read_asked(source.source, file, limits))
    works = (_work(one, older) for one in asked)
    with open_session(inputs, options, signals, total, hash_mb, RESULTS, check_found) as session:
        sums = _put_results(session, works)
        if sums is None:
            return signals.exit_status
    if session.has_journal:
        say(sums.text(older is not None))
    return EXIT_WRONG if sums.failed else 0


def analyse_stream(stream: Stream, options: argparse.Namespace, signals: Signals) -> int:
    """Analyse the JSON lines of a pipe, to standard output: each result as soon as it and those before it are there. A
    line that cannot be read ends it after the results of those before."""
    source = _StreamedWorks(stream, limits_of(options, DEFAULT_MOVETIME_MS), older_results(options))
    with open_session([], options, signals, None, hash_of(options, is_emptied=True), RESULTS) as session:
        sums = _put_results(session, source.works(), stream.fileno())
        if sums is None:
            return signals.exit_status
    if source.problem is not None:
        raise source.problem
    if not sums.positions:
        raise PsearchError(f"{stream.name} has no positions")
    return EXIT_WRONG if sums.failed else 0


def _put_results(
    session: AnalysisSession[Found], works: Iterable[Work[Asked, Found] | Pause], awaited: int | None = None
) -> _Sums | None:
    """Search everything and write the results. None: it was interrupted."""
    sums = _Sums()
    try:
        for done in session.analyser.answered(works, awaited):
            key = str(done.item.task.id)
            found, error = done.answers.get(key), done.problems.get(key)
            sums.add(done)
            session.put(json.dumps(object_of(done.item, found, error)) + "\n")
    except Stopped:
        session.progress.close()
        session.report_interruption()
        return None
    session.progress.close()
    session.finish()
    return sums


@dataclass
class _Sums:
    positions: int = 0
    failed: int = 0
    kept: int = 0

    def add(self, done: PositionAnswered[Asked, Found]) -> None:
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
    """Its lines. Raises PsearchError for a line that cannot be read, and when there is none."""
    count = sum(1 for _ in read_asked(one.source, 1, limits))
    if not count:
        raise PsearchError(f"{one.source.name} has no positions")
    return count


def _work(asked: Asked, older: OlderResults | None) -> Work[Asked, Found]:
    known = older.of_position(asked.task) if older is not None else None
    return Work(asked, [asked.task], {} if known is None else {str(asked.task.id): known})


class _StreamedWorks:
    """What comes through a pipe."""

    def __init__(self, stream: Stream, limits: Limits, older: OlderResults | None) -> None:
        self._stream = stream
        self._limits = limits
        self._older = older
        self.problem: PsearchError | None = None
        """why it could not be read to its end"""

    def works(self) -> Iterator[Work[Asked, Found] | Pause]:
        try:
            for asked in asked_by(self._stream, self._limits):
                yield Pause.INPUT if asked is None else _work(asked, self._older)
        except PsearchError as error:
            self.problem = error
