"""`psearch analyse` of test suites: a table or JSON, and the summary."""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from psearch.analysis.analyser import Stopped
from psearch.analysis.epd import Summary, Survey, Table, Verdict, json_object, judge, summary_text
from psearch.cli.analysis_session import Input, Session, open_session
from psearch.cli.output import say
from psearch.notation.epd import SuitePosition, read_positions
from psearch.results import PsearchError
from psearch.terminal.streams import printable

if TYPE_CHECKING:
    from psearch.cli.signals import Signals


def analyse_suites(inputs: Sequence[Input], options: argparse.Namespace, signals: Signals) -> int:
    """The exit status."""
    survey = Survey.of(itertools.chain.from_iterable(map(_positions_of, inputs)))
    figures = Summary()
    table = Table(survey)

    def summary() -> str:
        facts = figures.figures(survey.positions)
        return json.dumps({"summary": facts}) + "\n" if options.json else "\n" + summary_text(facts)

    with open_session(inputs, options, signals, survey.searchable) as session:
        try:
            if not options.json:
                session.put(table.head())
            for number, one in enumerate(inputs, start=1):
                if len(inputs) > 1 and not options.json:
                    session.put(f"{printable(one.name)}:\n")
                for position in read_positions(one.source):
                    verdict = _verdict(position, number, session)
                    figures.add(verdict, one.name)
                    session.progress.say(figures.standing)
                    row = json.dumps(json_object(verdict, one.name)) + "\n" if options.json else table.row(verdict)
                    session.put(row)
        except Stopped:
            session.progress.close()
            if not session.has_journal:
                session.put(summary())
            session.report_interruption()
            return signals.exit_status
        session.progress.close()
        session.put(summary())
        session.finish()
        if session.has_journal:
            say(summary_text(figures.figures(survey.positions)).rstrip())
    return 0


def _positions_of(one: Input) -> Iterator[SuitePosition]:
    """The positions of a file. Raises PsearchError when there is none."""
    positions = read_positions(one.source)
    for first in positions:
        return itertools.chain([first], positions)
    raise PsearchError(f"{one.source.name} has no positions")


def _verdict(position: SuitePosition, file: int, session: Session) -> Verdict:
    """Each position by itself: what was searched before must not help."""
    if not any(position.board.legal_moves):
        return judge(position, None)
    session.analyser.forget()
    return judge(position, session.answer(f"file {file} line {position.line}", position.board))
