"""What lasts from search to search: kernels, workers with their table, endgame tables, book, and what else the options
set."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Generic, TypeVar

import chess

from psearch.defaults import DEFAULT_POLICY, POLICY_NAMES
from psearch.faces.uci.uci_options import OptionValues
from psearch.options import Own, SearchOptions, kernels_of, network_digest
from psearch.processes.starting import prepare_launch
from psearch.processes.time_manager import LagMeter
from psearch.results import PsearchError
from psearch.scheduler.scheduler_entries import SEARCH, load_kernels
from psearch.searcher.notices import Notices
from psearch.searcher.searcher import Searcher, Size
from psearch.text import chess_files
from psearch.trace.recorder import Abandoned
from psearch.trace.trace_file import check_trace
from psearch_core.toolchain.groups import Progress
from psearch_core.toolchain.kernel_sets import STANDARD

_T = TypeVar("_T")
_Found = TypeVar("_Found")
_WRITING = "writing a trace"
_TOGETHER = "Rules with a file as Policy"


class FileOption(Generic[_T]):
    """Holds what the path in an option leads to; `value` is None while there is no path, or none that will do.

    What fails is told once and switched off, until the path changes or `retry`.
    """

    def __init__(
        self,
        name: str,
        open_path: Callable[[str], _T],
        notices: Notices,
        close: Callable[[_T], None] = lambda value: None,
    ) -> None:
        self._name = name
        self._open = open_path
        self._close = close
        self._notices = notices
        self._path, self._times = "", 0
        self.value: _T | None = None

    def settle(self, path: str, times: int = 0) -> None:
        """Open a path that is new, or was named another number of times; what was open before is closed first."""
        if (path, times) != (self._path, self._times):
            self._path, self._times = path, times
            self._notices.works(self._name)
            self._switch_off()
            self.retry()

    def retry(self) -> None:
        """Open what is not open, because it failed."""
        if self._path and self.value is None:
            try:
                self.value = self._open(self._path)
            except PsearchError as error:
                self._notices.fails(self._name, f"{self._name}: {error}; going on without")

    def ask(self, question: Callable[[_T], _Found | None]) -> _Found | None:
        """Return what the files say; None without them, or when they cannot say."""
        if self.value is None:
            return None
        try:
            return question(self.value)
        except PsearchError as error:
            self._notices.fails(self._name, f"{self._name}: {error}; going on without")
            self._switch_off()
            return None

    def _switch_off(self) -> None:
        if self.value is not None:
            self._close(self.value)
            self.value = None


def trace_path(text: str) -> Path:
    """Return where a trace goes. Raises PsearchError if none can be written there."""
    path = Path(text)
    check_trace(path)
    if path.exists() and not path.is_file():
        kind = "a pipe, which may have no reader" if path.is_fifo() else "a device"
        raise PsearchError(f"cannot write the trace {text}: it is {kind}")
    return path


class Resources:
    """Kernels, workers, table, endgame tables, book and trace file. Used by one thread; only `close` may be called from
    another, and `is_writing_trace` read.

    Kernels come with `load_kernels`, workers with the first `settle` after that. What is without either can be asked
    for a move of the book or of the endgame tables.
    """

    def __init__(self, notices: Notices) -> None:
        self._notices = notices
        self.has_kernels = False
        self.searcher = Searcher(notices)
        self._trace = FileOption("Trace", trace_path, notices)
        self.is_writing_trace = False
        self.prober = FileOption("SyzygyPath", self._open_tables, notices, lambda prober: prober.close())
        self._network = FileOption("EvalFile", network_digest, notices)
        self._policy = FileOption("Policy", lambda policy: self._compiled(policy, ""), notices)
        self._rules = FileOption("Rules", lambda path: self._compiled(DEFAULT_POLICY, path), notices)
        self.book = FileOption("BookFile", lambda path: chess_files.Book(path), notices, lambda book: book.close())
        self.lag = LagMeter()
        """of the game's moves"""
        self.dice = random.Random()
        """draws book moves, and the weaker moves of a limited strength"""

    def load_kernels(self, progress: Progress) -> float:
        """Load the kernels, which compiles them on the first run; the seconds that took. Raises whatever prevents it,
        and may be tried again then."""
        with suppress(OSError, PsearchError):  # comes back when the workers are started, and is told then
            prepare_launch()
        seconds = load_kernels(progress=progress)
        self.has_kernels = True
        return seconds

    def close(self) -> None:
        """End the workers. What is being done fails."""
        self.searcher.close()

    def settle(self, values: OptionValues) -> None:
        """Make things as the options say. What cannot be is told, once, and the next best is done."""
        self._trace.settle(values["Trace"])
        self.prober.settle(values["SyzygyPath"])
        self.book.settle(values["BookFile"])
        self._network.settle(values["EvalFile"], values.times("EvalFile"))
        if self.has_kernels:
            threads, hash_mb = values["Threads"], values["Hash"]
            policy = values["Policy"]
            times = values.times("Policy", "Rules")  # they may be one file
            self._policy.settle("" if policy in POLICY_NAMES else policy, times)
            self._rules.settle(values["Rules"], times)
            own = self._own(policy)
            kernels = STANDARD if own is None else own.kernels
            self.searcher.settle(Size(threads, hash_mb, self._trace.value is not None, kernels=kernels))

    def _open_tables(self, path: str) -> chess_files.RootProber:
        """Return endgame tables; what is wrong with some of them is reported. Raises PsearchError for none."""
        prober = chess_files.RootProber(path)
        for problem in prober.problems:
            self._notices.tell(f"SyzygyPath: {problem}")
        return prober

    def _compiled(self, policy: str, with_: str) -> Own:
        """Return the kernels of a file, compiled. Raises PsearchError."""
        kernels = kernels_of(policy, with_)
        load_kernels(kernels.group(SEARCH), progress=self._notices.tell)
        return Own(policy, with_, kernels)

    def _own(self, policy: str) -> Own | None:
        """The kernels of the files of Policy and Rules, which have to be the same file if there are both. policy: what
        Policy says."""
        own, rules = self._policy.value, self._rules.value
        if own is not None and rules is not None and own.kernels.file != rules.kernels.file:
            self._notices.fails(
                _TOGETHER, "Rules: with a file as Policy, put both into one file; going on without Rules"
            )
            return own
        self._notices.works(_TOGETHER)
        if rules is None:
            return own
        return rules._replace(policy=policy if policy in POLICY_NAMES or own is not None else DEFAULT_POLICY)

    def search_options(self, values: OptionValues) -> SearchOptions:
        """Return how to search, with the files that could be read."""
        return values.search_options(self._network.value or ("", ""), self._own(values["Policy"]))

    def restore(self, may_wait: Callable[[], bool]) -> bool:
        """Start new workers for those that are lost or late: now, and not on the clock of the next move, as long as
        there is time for that. Whether any were."""
        notes = self.searcher.restore(may_wait)
        for text in notes:
            self.note(text)
        return bool(notes)

    @property
    def watched(self) -> int | None:
        """A descriptor that is readable when workers want to be restored; None while there are no processes."""
        return self.searcher.supervisor.pool.fileno() if self.searcher.are_there else None

    def note(self, text: str) -> None:
        """Tell what happened to workers; each once, as long as no processes can be had."""
        if self.searcher.are_there and self.searcher.supervisor.pool.are_processes:
            self._notices.tell(text)
        else:
            self._notices.fails(text, text)

    def new_game(self) -> None:
        """Forget what was learnt, and try again what could not be had."""
        for option in (self.prober, self.book, self._trace, self._policy, self._rules):
            option.retry()
        if self.has_kernels:
            self.searcher.retry()
        self.forget()
        self.lag = LagMeter()

    def forget(self) -> None:
        """Forget what was learnt."""
        if self.searcher.are_there:
            self.searcher.supervisor.forget()

    def write_trace(self, board: chess.Board, how: Mapping[str, str], is_wanted: Callable[[], bool]) -> None:
        """Write the trace of the last search, of this position, if there is to be one, as long as `is_wanted`. how:
        what else the file says of it. A failure is told once."""
        path = self._trace.value
        if path is None or not self.searcher.are_there:
            return
        self.searcher.supervisor.settle()  # no worker writes to the logs any more
        recorder = self.searcher.supervisor.recorder
        if recorder is None:
            return
        self.is_writing_trace = True
        try:
            recorder.write(path, {"position": board.fen(), **how}, is_wanted)
        except Abandoned:
            self._notices.tell("Trace: not written, the next search did not wait")
        except (OSError, PsearchError) as error:
            reason = f"cannot write {path}: {error.strerror}" if isinstance(error, OSError) else error
            self._notices.fails(_WRITING, f"Trace: {reason}")
        else:
            self._notices.works(_WRITING)
            lost = sum(recorder.dropped.values())
            if lost:
                self._notices.tell(f"Trace: not complete, {lost:,} events found no room")
        finally:
            self.is_writing_trace = False
