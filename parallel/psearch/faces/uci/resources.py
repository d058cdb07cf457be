"""Resources that last between searches: kernels, workers with their table, endgame tables, opening book, trace file."""

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
    """Holds what the path in an option leads to; `value` is None without a usable path. A failure is reported once, and
    switches the option off until the path changes or `retry` is called."""

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
        """Close the old file and open the path, if the path or the number of times it was set has changed."""
        if (path, times) != (self._path, self._times):
            self._path, self._times = path, times
            self._notices.works(self._name)
            self._switch_off()
            self.retry()

    def retry(self) -> None:
        """Open the path again if that failed before."""
        if self._path and self.value is None:
            try:
                self.value = self._open(self._path)
            except PsearchError as error:
                self._notices.fails(self._name, f"{self._name}: {error}; continuing without it")

    def ask(self, question: Callable[[_T], _Found | None]) -> _Found | None:
        """Return the answer of the files; None without files, without an answer, or on an error."""
        if self.value is None:
            return None
        try:
            return question(self.value)
        except PsearchError as error:
            self._notices.fails(self._name, f"{self._name}: {error}; continuing without it")
            self._switch_off()
            return None

    def _switch_off(self) -> None:
        if self.value is not None:
            self._close(self.value)
            self.value = None


def trace_path(text: str) -> Path:
    """Return the path of a trace. Raises PsearchError if it cannot be written."""
    path = Path(text)
    check_trace(path)
    if path.exists() and not path.is_file():
        kind = "a pipe, which may have no reader" if path.is_fifo() else "a device"
        raise PsearchError(f"cannot write the trace {text}: it is {kind}")
    return path


class Resources:
    """Kernels, workers, table, endgame tables, book and trace file.

    For one thread; another may only close the `searcher` and read `is_writing_trace`. `load_kernels` loads the kernels,
    and the first `settle` after that starts the workers. Book and endgame tables work without both.
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
        """Measures the lag of the moves of the current game."""
        self.dice = random.Random()
        """Draws book moves, the seeds of games and delays like a person's."""
        self.seed = str(self.dice.random())
        """Seed of the present game for `SearchRequest.seed`."""

    def load_kernels(self, progress: Progress) -> float:
        """Load the kernels, compiled on the first run; return the seconds it took. May be retried after any error."""
        with suppress(OSError, PsearchError):  # fails again when the workers start, and is reported then
            prepare_launch()
        seconds = load_kernels(progress=progress)
        self.has_kernels = True
        return seconds

    def settle(self, values: OptionValues) -> None:
        """Apply the options. A failure is reported once, and a fallback is used."""
        self._trace.settle(values["Trace"])
        self.prober.settle(values["SyzygyPath"])
        self.book.settle(values["BookFile"])
        self._network.settle(values["EvalFile"], values.times("EvalFile"))
        if self.has_kernels:
            threads, hash_mb = values["Threads"], values["Hash"]
            policy = values["Policy"]
            times = values.times("Policy", "Rules")  # both may be the same file
            self._policy.settle("" if policy in POLICY_NAMES else policy, times)
            self._rules.settle(values["Rules"], times)
            own = self._own(policy)
            kernels = STANDARD if own is None else own.kernels
            self.searcher.settle(Size(threads, hash_mb, self._trace.value is not None, kernels=kernels))

    def _open_tables(self, path: str) -> chess_files.RootProber:
        """Return the endgame tables, and report unusable ones. Raises PsearchError if there are none."""
        prober = chess_files.RootProber(path)
        for problem in prober.problems:
            self._notices.tell(f"SyzygyPath: {problem}")
        return prober

    def _compiled(self, policy: str, with_: str) -> Own:
        """Return the compiled kernels of a file. Raises PsearchError."""
        kernels = kernels_of(policy, with_)
        load_kernels(kernels.group(SEARCH), progress=self._notices.tell)
        return Own(policy, with_, kernels)

    def _own(self, policy: str) -> Own | None:
        """Return the kernels of the files of Policy and Rules, which must be the same file. policy: value of Policy."""
        own, rules = self._policy.value, self._rules.value
        if own is not None and rules is not None and own.kernels.file != rules.kernels.file:
            self._notices.fails(
                _TOGETHER, "Rules: with a file as Policy, put both into one file; continuing without Rules"
            )
            return own
        self._notices.works(_TOGETHER)
        if rules is None:
            return own
        return rules._replace(policy=policy if policy in POLICY_NAMES or own is not None else DEFAULT_POLICY)

    def search_options(self, values: OptionValues) -> SearchOptions:
        """Return the options of a search, with the files that could be read."""
        return values.search_options(self._network.value or ("", ""), self._own(values["Policy"]))

    def restore(self, may_wait: Callable[[], bool]) -> bool:
        """Replace lost or late workers while `may_wait`, so not on the clock. Return whether there were any."""
        notes = self.searcher.restore(may_wait)
        for text in notes:
            self.note(text)
        return bool(notes)

    @property
    def watched(self) -> int | None:
        """Return a descriptor that is readable when workers need to be replaced; None without processes."""
        return self.searcher.supervisor.pool.fileno() if self.searcher.are_there else None

    def note(self, text: str) -> None:
        """Report what happened to workers; each text only once while no processes can be started."""
        if self.searcher.are_there and self.searcher.supervisor.pool.are_processes:
            self._notices.tell(text)
        else:
            self._notices.fails(text, text)

    def new_game(self) -> None:
        """Forget everything learnt, and retry what has failed."""
        for option in (self.prober, self.book, self._trace, self._policy, self._rules):
            option.retry()
        if self.has_kernels:
            self.searcher.retry()
        self.forget()
        self.lag, self.seed = LagMeter(), str(self.dice.random())

    def forget(self) -> None:
        """Forget everything learnt."""
        if self.searcher.are_there:
            self.searcher.supervisor.forget()

    def write_trace(self, board: chess.Board, how: Mapping[str, str], is_wanted: Callable[[], bool]) -> None:
        """Write the trace of the last search, if requested, while `is_wanted`. how: further facts for the file."""
        path = self._trace.value
        if path is None or not self.searcher.are_there:
            return
        self.searcher.supervisor.settle()  # from here on no worker writes to the logs
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
                self._notices.tell(f"Trace: incomplete, {lost:,} events did not fit")
        finally:
            self.is_writing_trace = False
