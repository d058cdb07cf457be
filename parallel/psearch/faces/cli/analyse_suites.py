"""`psearch analyse` of test suites: a table or JSON, and the summary."""

from __future__ import annotations

import argparse
import itertools
import json
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from psearch.batch.analysis.analyser import Work
from psearch.batch.analysis.suite_results import (
    SuiteSummary,
    SuiteTable,
    Survey,
    json_object,
    judge,
    summary_text,
)
from psearch.batch.positions.task import Task
from psearch.faces.cli.analysis_session import (
    Input,
    Problems,
    complain_beside,
    hash_of,
    older_results,
    open_session,
)
from psearch.faces.cli.exit_status import EXIT_WRONG
from psearch.faces.cli.output import complain, say
from psearch.results import Limits, PsearchError
from psearch.terminal.streams import is_terminal, printable
from psearch.text.epd_text import SuitePosition, read_positions
from psearch.text.values import counted

if TYPE_CHECKING:
    from psearch.batch.analysis.analysis_files import OlderResults
    from psearch.faces.cli.signals import Signals


def analyse_suites(inputs: Sequence[Input], options: argparse.Namespace, signals: Signals) -> int:
    """Analyse suites and return the exit status."""
    older = older_results(options)
    problems = Problems()
    survey = Survey.of(itertools.chain.from_iterable(_positions_of(one, problems) for one in inputs))
    figures = SuiteSummary(kept=None if older is None else 0)
    shown = options.out is None and is_terminal(sys.stdout)
    table = SuiteTable(survey, shutil.get_terminal_size().columns if shown else None)

    failed = 0
    hash_mb = hash_of(options, is_emptied=True)
    with open_session(inputs, options, signals, survey.searchable, hash_mb) as session:
        for problem in problems.told():
            complain_beside(session.progress, problem)
        if not options.json:
            session.put(table.head())
        number = 0
        for done in session.answered(_works(inputs, session.limits, older)):
            entry = done.item
            if entry.file != number and len(inputs) > 1 and not options.json:
                for one in inputs[number : entry.file]:
                    session.put(f"{printable(one.name)}:\n")
            number = entry.file
            name = inputs[number - 1].name
            verdict = judge(entry.position, done.answers.get(entry.key), done.problems.get(entry.key))
            failed += verdict.problem is not None
            figures.add(verdict, name, done.from_older)
            session.progress.say(figures.solved_text)
            session.put(json.dumps(json_object(verdict, name)) + "\n" if options.json else table.row(verdict))
            if verdict.problem is not None:
                complain_beside(session.progress, f"{entry.position.name}: {verdict.problem}")
        facts = figures.figures(survey.positions)
        if not session.end(json.dumps({"summary": facts}) + "\n" if options.json else "\n" + summary_text(facts)):
            return signals.exit_status
        if session.has_journal:
            say(summary_text(facts).rstrip())
        if problems.count:
            say(f"{counted(problems.count, 'line')} left out")
    return EXIT_WRONG if failed or problems.count else 0


@dataclass(frozen=True)
class _Entry:
    """A position, and the file that has it."""

    file: int
    """from 1"""
    position: SuitePosition

    @property
    def key(self) -> str:
        """In the journal."""
        return f"file {self.file} line {self.position.line}"


def _works(inputs: Sequence[Input], limits: Limits, older: OlderResults | None) -> Iterator[Work[_Entry]]:
    """Yield each position by itself: what was searched before must not help."""
    for file, one in enumerate(inputs, start=1):
        for position in read_positions(one.source, lambda problem: None):
            entry = _Entry(file, position)
            if not any(position.board.legal_moves):
                yield Work(entry, [])
                continue
            task = Task.of_board(entry.key, position.board, limits)
            known = older.of_position(task, position.board.fen()) if older is not None else None
            yield Work(entry, [task], {} if known is None else {entry.key: known})


def _positions_of(one: Input, problems: Problems) -> Iterator[SuitePosition]:
    """The positions of a file. Raises PsearchError when there is none."""
    before = problems.count
    positions = read_positions(one.source, problems.add)
    for first in positions:
        return itertools.chain([first], positions)
    if problems.count > before:
        *others, last = problems.told()
        for problem in others:
            complain(problem)
        raise PsearchError(last)
    raise PsearchError(f"{one.source.name} has no positions")
