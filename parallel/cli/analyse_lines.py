"""`psearch analyse` of JSON lines: positions in, results out, one object a line."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from psearch.analysis.analyser import Stopped, Work
from psearch.analysis.json_lines import RESULTS, Asked, OlderResults, check_found, object_of, read_asked
from psearch.cli.analysis_session import DEFAULT_MOVETIME_MS, Input, hash_of, open_session
from psearch.cli.arguments import limits_of
from psearch.cli.exit_status import EXIT_WRONG
from psearch.cli.output import counted, say
from psearch.notation.source import read_source
from psearch.results import Limits, PsearchError

if TYPE_CHECKING:
    from psearch.cli.signals import Signals


def analyse_lines(inputs: Sequence[Input], options: argparse.Namespace, signals: Signals) -> int:
    """The exit status."""
    limits = limits_of(options, DEFAULT_MOVETIME_MS)
    older = OlderResults(read_source(options.merge)) if options.merge is not None else None
    total = sum(_count(one, limits) for one in inputs)
    hash_mb = hash_of(options, is_emptied=True)
    done = _Sums()
    with open_session(inputs, options, signals, total, hash_mb, RESULTS, check_found) as session:
        try:
            for answered in session.analyser.answered(_works(inputs, limits, older, session.analyser.on_answer)):
                entry = answered.item
                key = str(entry.asked.task.id)
                found, error = answered.answers.get(key), answered.problems.get(key)
                kept = entry.older
                if kept is None and older is not None:
                    kept = older.deeper(entry.asked.task, found.lines[0].depth if found is not None else 0)
                done.add(kept, error)
                values = object_of(entry.asked, found, error) if kept is None else {**kept, "id": entry.asked.id}
                session.put(json.dumps(values) + "\n")
        except Stopped:
            session.progress.close()
            session.report_interruption()
            return signals.exit_status
        session.progress.close()
        session.finish()
    if session.has_journal:
        say(done.text(older is not None))
    return EXIT_WRONG if done.failed else 0


@dataclass
class _Sums:
    positions: int = 0
    failed: int = 0
    kept: int = 0

    def add(self, older: dict[str, Any] | None, error: str | None) -> None:
        self.positions += 1
        self.kept += older is not None
        self.failed += older is None and error is not None

    def text(self, has_older: bool) -> str:
        words = [counted(self.positions, "position")]
        if has_older:
            words.append(f"{self.kept:,} kept from older results")
        if self.failed:
            words.append(f"{self.failed:,} failed")
        return ", ".join(words)


@dataclass(frozen=True)
class _Entry:
    asked: Asked
    older: dict[str, Any] | None
    """what is as deep as a search could be, so that none is needed"""


def _count(one: Input, limits: Limits) -> int:
    """Its lines. Raises PsearchError for a line that cannot be read, and when there is none."""
    count = sum(1 for _ in read_asked(one.source, 1, limits))
    if not count:
        raise PsearchError(f"{one.source.name} has no positions")
    return count


def _works(
    inputs: Sequence[Input], limits: Limits, older: OlderResults | None, on_answer: Callable[[bool], None]
) -> Iterator[Work[_Entry]]:
    for file, one in enumerate(inputs, start=1):
        for asked in read_asked(one.source, file, limits):
            known = None
            depth = asked.task.limits.depth
            if older is not None and depth is not None:
                known = older.deeper(asked.task, depth - 1)
            if known is not None:
                on_answer(False)
            yield Work(_Entry(asked, known), [] if known is not None else [asked.task])
