"""What `psearch analyse` does alike for suites, games and JSON lines: output, journal, pool and bar, from start to
end."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from psearch.arena.control_groups import usable_cores
from psearch.batch.analysis.analyser import Analyser, Stopped, Work
from psearch.batch.analysis.analysis_files import AnalysisJournal, OlderResults, Output, place_of
from psearch.batch.positions.task import Pause
from psearch.defaults import JOB_HASH_MB, MAX_THREADS
from psearch.faces.cli.arguments import limits_of, search_options
from psearch.faces.cli.kernels import prepare_kernels
from psearch.faces.cli.output import complain
from psearch.results import Limits
from psearch.settings import SEARCH_SETTINGS, SETTINGS, Face
from psearch.terminal.analysis_display import AnalysisProgress
from psearch.text.source import Source, read_source
from psearch.version import __version__

if TYPE_CHECKING:
    from psearch.batch.positions.position_pool import PositionPool
    from psearch.faces.cli.signals import Signals
    from psearch.options import SearchOptions

T = TypeVar("T")
DEFAULT_MOVETIME_MS = 1_000
"""Time for each position."""
_MOST_PROBLEMS = 10
"""Problems that are reported line by line."""
_ALWAYS = ("policy", "pruning")
"""Settings that a journal names even where they are the defaults."""


@dataclass(frozen=True)
class Input:
    """A file as the user named it, and what is in it."""

    name: str
    source: Source


@dataclass
class Problems:
    """Collects what is wrong with the input, and reports the first of it line by line."""

    count: int = 0
    texts: list[str] = field(default_factory=list)

    def add(self, text: str) -> None:
        self.count += 1
        if self.count <= _MOST_PROBLEMS:
            self.texts.append(text)

    def told(self) -> list[str]:
        """Return a line for each problem, and one for those that are too many."""
        more = self.count - len(self.texts)
        return [*self.texts, f"{more:,} more like these"] if more else self.texts


class AnalysisSession:
    """An analysis that goes on. total: positions that need a search, those of the journal included; None: nobody
    knows."""

    def __init__(
        self, analyser: Analyser, limits: Limits, output: Output, progress: AnalysisProgress, total: int | None
    ) -> None:
        self.analyser = analyser
        self.limits = limits
        self.progress = progress
        self._output = output
        self._total = total
        self._is_interrupted = False

    @property
    def has_journal(self) -> bool:
        """Whether the result goes to a file."""
        return self.analyser.journal is not None

    def answered(self, works: Iterable[Work[T] | Pause], awaited: int | None = None) -> Iterator[Work[T]]:
        """Yield everything with its answers, as `Analyser` does, until there is nothing more or a signal comes."""
        try:
            yield from self.analyser.answered(works, awaited)
        except Stopped:
            self._is_interrupted = True

    def put(self, text: str) -> None:
        """Add to the result; on stdout the bar makes room, because that may be the same terminal."""
        with self.progress.aside(None if self.has_journal else sys.stdout):
            self._output.write(text)

    def end(self, summary: str = "") -> bool:
        """Put the summary behind a complete result, move that to its place, and then take the journal away. After an
        interruption say what is kept of what was searched, and return False."""
        self.progress.close()
        journal = self.analyser.journal
        if not self._is_interrupted or journal is None:
            self.put(summary)
        if self._is_interrupted:
            kept = f"; {_kept(journal, self._total)}: the same command goes on from there" if journal else ""
            complain(f"interrupted{kept}")
            return False
        self._output.commit()
        if journal is not None:
            journal.remove()
        return True


@contextmanager
def open_session(
    inputs: Sequence[Input],
    options: argparse.Namespace,
    signals: Signals,
    total: int | None,
    hash_mb: int,
) -> Iterator[AnalysisSession]:
    """Open output, journal, pool and bar in the order in which they can fail. hash_mb: of each job."""
    how = search_options(options)
    limits = limits_of(options, DEFAULT_MOVETIME_MS)
    with ExitStack() as stack:
        place = place_of(options.out)
        journal: AnalysisJournal | None = None
        if place is not None:
            # the first of all, because its lock keeps a second run away from the other files
            about = _about(inputs, options, how, hash_mb)
            journal = stack.enter_context(AnalysisJournal(Path(f"{place}.journal"), about))
        output = stack.enter_context(Output(place))
        if options.on is None:
            from psearch.scheduler.scheduler_entries import SEARCH

            prepare_kernels(how.kernels.group(SEARCH))
        tell: list[Callable[[str], None]] = [complain]
        done = len(journal) if journal is not None else 0
        pool = _pool(options, how, None if total is None else total - done, hash_mb, lambda note: tell[0](note))
        stack.callback(pool.close)
        if journal is not None and done:
            complain(f"{_kept(journal, total)}: going on from there")
        progress = stack.enter_context(AnalysisProgress(total, pool.work_done))
        tell[0] = lambda note: complain_beside(progress, note)
        signals.searching = True

        def is_stopped() -> bool:
            progress.tick()
            return signals.control.is_stopped

        analyser = Analyser(
            pool,
            is_stopped,
            journal,
            progress.advance,
            tell[0],
            0 if options.threads is not None or options.on is not None else jobs_of(options),
            options.threads == 1 and limits.movetime_ms is None,
        )
        yield AnalysisSession(analyser, limits, output, progress, total)
        progress.close()
        if pool.work_done():
            complain(f"positions by machine: {pool.work_done()}")


def _kept(journal: AnalysisJournal, total: int | None) -> str:
    of = f" of {total:,}" if total is not None else ""
    return f"{len(journal):,}{of} positions are in {journal.path}"


def _pool(
    options: argparse.Namespace,
    how: SearchOptions,
    missing: int | None,
    hash_mb: int,
    on_note: Callable[[str], None],
) -> PositionPool:
    """Start no more workers than there are positions to search, if that is known."""
    from psearch.batch.positions.position_pool import WorkerSettings, make_pool

    jobs = jobs_of(options)
    return make_pool(
        jobs if missing is None else max(1, min(jobs, missing)),
        WorkerSettings(options.threads or 1, hash_mb, how, options.syzygy or ""),
        options.on,
        on_note,
    )


def jobs_of(options: argparse.Namespace) -> int:
    """Return how many positions are searched at a time: `--jobs`, or as many as there are cores for."""
    if options.jobs is not None:
        return int(options.jobs)
    if options.on is not None:
        return MAX_THREADS  # as many as there is room for
    return max(1, min(MAX_THREADS, usable_cores() // (options.threads or 1)))


def older_results(options: argparse.Namespace) -> OlderResults | None:
    """Return what `--merge` names."""
    return None if options.merge is None else OlderResults(read_source(options.merge))


def hash_of(options: argparse.Namespace, is_emptied: bool) -> int:
    """Return MiB of table of each job. is_emptied: before each position; then a larger one than it can use only costs
    time."""
    if options.hash is not None:
        return int(options.hash)
    limits = limits_of(options, DEFAULT_MOVETIME_MS)
    if not is_emptied or limits.nodes is None:
        return JOB_HASH_MB
    from psearch.batch.positions.many import useful_hash_mb

    return useful_hash_mb(Limits(nodes=limits.nodes))


def complain_beside(progress: AnalysisProgress, message: str) -> None:
    """Print a line on stderr while the bar is there."""
    with progress.aside(sys.stderr):
        complain(message)


def limit_text(options: argparse.Namespace) -> str:
    """Return `depth 12`, `1.5 s a position`, `depth 12 or 200,000 nodes a position`."""
    limits = limits_of(options, DEFAULT_MOVETIME_MS)
    words = [
        f"depth {limits.depth}" if limits.depth is not None else "",
        f"{limits.movetime_ms / 1000:g} s a position" if limits.movetime_ms is not None else "",
        f"{limits.nodes:,} nodes a position" if limits.nodes is not None else "",
    ]
    return " or ".join(filter(None, words))


def _about(inputs: Sequence[Input], options: argparse.Namespace, how: SearchOptions, hash_mb: int) -> dict[str, Any]:
    """What the answers depend on. With one thread each, how many jobs there are is not among it."""
    limits = {name: value for name, value in asdict(limits_of(options, DEFAULT_MOVETIME_MS)).items() if value}
    named = (one for one in SEARCH_SETTINGS if not one.is_path)  # files are told by what is in them
    settings = {one.field: getattr(options, one.field) for one in named if Face.COMMAND_LINE in one.faces}
    return {
        "input": [one.source.sha256 for one in inputs],
        **limits,
        "threads": options.threads or "1, and others at the end",
        "hash": hash_mb,
        **{name: value for name, value in settings.items() if name in _ALWAYS or value != SETTINGS[name].default},
        **({"rules file" if how.with_ else "policy file": how.kernels.digest} if how.own is not None else {}),
        "network": how.read_network().name,
        **({"syzygy": options.syzygy} if options.syzygy else {}),
        "psearch": __version__,
    }
