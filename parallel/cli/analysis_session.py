"""What `psearch analyse` does alike for suites and games: output, journal, engine and bar, from start to end."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psearch.analysis.analyser import Analyser, Answer
from psearch.analysis.journal import AnalysisJournal, check_answer, check_moves
from psearch.analysis.output import Output, place_of
from psearch.cli.arguments import limits_of, search_options
from psearch.cli.kernels import prepare_kernels
from psearch.cli.output import complain
from psearch.notation.source import Source
from psearch.results import PsearchError
from psearch.terminal.analysis_display import AnalysisProgress
from psearch.version import __version__

if TYPE_CHECKING:
    import chess

    from psearch.cli.signals import Signals

DEFAULT_MOVETIME_MS = 1_000
"""for each position"""


@dataclass(frozen=True)
class Input:
    """A file as the user named it, and what is in it."""

    name: str
    source: Source


class Session:
    """An analysis that goes on. total: positions that need a search, those of the journal included."""

    def __init__(self, analyser: Analyser, output: Output, progress: AnalysisProgress, total: int) -> None:
        self.analyser = analyser
        self.progress = progress
        self._output = output
        self._total = total

    @property
    def has_journal(self) -> bool:
        """Whether the result goes to a file."""
        return self.analyser.journal is not None

    def answer(self, key: str, board: chess.Board) -> Answer:
        """The answer for a position. Raises PsearchError when the journal has one that is of another position."""
        journal = self.analyser.journal
        kept = journal is not None and key in journal
        answer = self.analyser.answer(key, board)
        if kept and journal is not None:
            try:
                check_moves(board, answer.best, answer.pv, [choice.move for choice in answer.choices])
            except ValueError as error:
                raise PsearchError(f"{journal.path}: not an answer for {key}: {error}") from None
        return answer

    def put(self, text: str) -> None:
        """Add to the result; on stdout the bar makes room, because that may be the same terminal."""
        with self.progress.aside(None if self.has_journal else sys.stdout):
            self._output.write(text)

    def finish(self) -> None:
        """Everything is searched: the result to its place, and then the journal away."""
        self._output.commit()
        if self.analyser.journal is not None:
            self.analyser.journal.remove()

    def report_interruption(self) -> None:
        """What is kept of what was searched."""
        journal = self.analyser.journal
        if journal is not None and len(journal):
            count = f"{len(journal):,} of {self._total:,} positions are in {journal.path}"
            complain(f"interrupted; {count}: the same command goes on from there")
        else:
            complain("interrupted")


@contextmanager
def open_session(
    inputs: Sequence[Input], options: argparse.Namespace, signals: Signals, total: int
) -> Iterator[Session]:
    """Output, journal, engine and bar, opened in the order in which they can fail."""
    how = search_options(options)
    with ExitStack() as stack:
        place = place_of(options.out)
        journal: AnalysisJournal | None = None
        if place is not None:
            # the first of all, because its lock keeps a second run away from the other files
            journal = stack.enter_context(
                AnalysisJournal(Path(f"{place}.journal"), _about(inputs, options), check_answer)
            )
        output = stack.enter_context(Output(place))
        prepare_kernels()

        from psearch.processes.supervisor import Supervisor

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
            lambda note: complain_beside(progress, note),
        )
        yield Session(analyser, output, progress, total)


def complain_beside(progress: AnalysisProgress, message: str) -> None:
    """One line on stderr while the bar is there."""
    with progress.aside(sys.stderr):
        complain(message)


def limit_text(options: argparse.Namespace) -> str:
    """`depth 12`, `1.5 s a position`, `200,000 nodes a position`."""
    limits = limits_of(options, DEFAULT_MOVETIME_MS)
    if limits.depth is not None:
        return f"depth {limits.depth}"
    if limits.nodes is not None:
        return f"{limits.nodes:,} nodes a position"
    return f"{(limits.movetime_ms or 0) / 1000:g} s a position"


def _about(inputs: Sequence[Input], options: argparse.Namespace) -> dict[str, Any]:
    """What the answers depend on."""
    limits = {name: value for name, value in asdict(limits_of(options, DEFAULT_MOVETIME_MS)).items() if value}
    return {
        "input": [one.source.sha256 for one in inputs],
        **limits,
        "threads": options.threads,
        "hash": options.hash,
        "policy": options.policy,
        "pruning": options.pruning,
        "psearch": __version__,
    }
