"""What lasts from search to search: workers with their table, tablebases, book, and what else the options set."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import chess

from psearch.core.kernels import Progress
from psearch.defaults import DEFAULT_PRUNING
from psearch.options import pruning_named
from psearch.processes.launcher import prepare_launch
from psearch.processes.supervisor import Supervisor
from psearch.results import PsearchError, WorkerDied
from psearch.scheduler.entries import load_kernels
from psearch.trace.recorder import Abandoned
from psearch.trace.trace_file import check_trace
from psearch.uci.options import OptionValues

if TYPE_CHECKING:
    from psearch.notation.polyglot import Book
    from psearch.notation.syzygy import RootProbe, RootProber
    from psearch.uci.messages import Say

_T = TypeVar("_T")


class Resources:
    """Kernels, workers, table, tablebases, book and trace file. Used by one thread; only `close` may be called from
    another, and `is_writing_trace` read.

    The construction loads the kernels, which compiles them on the first run; workers come with the first `settle`.
    """

    def __init__(self, say: Say, progress: Progress) -> None:
        self._say = say
        self._supervisor: Supervisor | None = None
        self._size = _Size(0, 0, False)
        self._is_fresh = True
        """nothing has been searched since the table was cleared"""
        self._trace = _FileOption("Trace", _trace_path, say)
        self.is_writing_trace = False
        self._prober = _FileOption("SyzygyPath", _open_prober, say, close=lambda prober: prober.close())
        self._book = _FileOption("BookFile", _open_book, say, close=lambda book: book.close())
        self.dice = random.Random()
        """draws book moves, and the weaker moves of a limited strength"""
        self._pruning_text = ""
        self.pruning = pruning_named(DEFAULT_PRUNING)
        prepare_launch()
        self.load_s = load_kernels(progress=progress)
        """seconds that loading, or compiling, the kernels took"""

    def close(self) -> None:
        """End the workers. What is being done fails."""
        if self._supervisor is not None:
            self._supervisor.close()

    # -- options -----------------------------------------------------------------------------------------------------

    def settle(self, values: OptionValues) -> None:
        """Make things as the options say. What cannot be is reported, and what was there before stays."""
        self._trace.settle(values.text("Trace"))
        self._settle_workers(_Size(values.number("Threads"), values.number("Hash"), self._trace.value is not None))
        self._prober.settle(values.text("SyzygyPath"))
        self._settle_pruning(values.text("Pruning"), values.text("PruningParameters"))
        self._book.settle(values.text("BookFile"))

    def _settle_workers(self, size: _Size) -> None:
        usable = self._supervisor is not None and self._supervisor.is_usable
        if usable and size == self._size:
            return
        former = self._size if usable else None
        if self._supervisor is not None:
            self._supervisor.close()  # first: the memory may not be there twice
            self._supervisor = None
        try:
            self._supervisor = size.start()
        except PsearchError as error:
            self._say(f"info string {error}")
            if former is None:
                former = _Size(1, 1, False)
            tracing = "" if former.trace == size.trace else f", {'with' if former.trace else 'without'} a trace"
            self._say(f"info string going on with Threads {former.threads} and Hash {former.hash_mb}{tracing}")
            self._supervisor = former.start()
        self._size = size  # also when it was refused: not tried again before it changes
        self._is_fresh = True

    def _settle_pruning(self, mode: str, parameters: str) -> None:
        text = ",".join([mode, *parameters.replace(",", " ").split()])
        if text == self._pruning_text:
            return
        self._pruning_text = text
        try:
            self.pruning = pruning_named(text)
        except PsearchError as error:
            self._say(f"info string {error}")

    # -- for a search ------------------------------------------------------------------------------------------------

    @property
    def supervisor(self) -> Supervisor:
        """The workers, as `settle` left them. Raises PsearchError if there are none."""
        if self._supervisor is None:
            raise PsearchError("there are no workers")
        self._is_fresh = False
        return self._supervisor

    def restart(self, error: WorkerDied) -> None:
        """New workers after a death: now, and not on the clock of the next move."""
        self._say(f"info string {error}")
        self._settle_workers(self._size)

    def new_game(self) -> None:
        """Forget what was learnt. Nothing to do, and no time to lose, before the first search."""
        if self._supervisor is not None and self._supervisor.is_usable and not self._is_fresh:
            self._supervisor.forget()
            self._is_fresh = True

    def book_move(self, board: chess.Board) -> chess.Move | None:
        """A move drawn from the book; None without a book, or when the position is not in it."""
        return None if self._book.value is None else self._book.value.pick(board, self.dice)

    def probe(self, board: chess.Board) -> RootProbe | None:
        """What the tablebases say; None without them, or when they cannot say."""
        return None if self._prober.value is None else self._prober.value.probe(board)

    def write_trace(self, facts: dict[str, Any], is_wanted: Callable[[], bool]) -> None:
        """Write the trace of the last search, if there is to be one, as long as `is_wanted`. Failures are reported."""
        recorder = self.supervisor.recorder
        path = self._trace.value
        if recorder is None or path is None:
            return
        self.is_writing_trace = True
        try:
            recorder.write(path, facts, is_wanted)
        except Abandoned:
            self._say("info string Trace: not written, the next search did not wait")
        except OSError as error:
            self._say(f"info string Trace: cannot write {path}: {error.strerror}")
        else:
            lost = sum(recorder.dropped.values())
            if lost:
                self._say(f"info string Trace: not complete, {lost:,} events found no room")
        finally:
            self.is_writing_trace = False


class _Size(NamedTuple):
    """What takes new workers when it changes."""

    threads: int
    hash_mb: int
    trace: bool
    """whether there is room for a trace"""

    def start(self) -> Supervisor:
        return Supervisor(self.threads, self.hash_mb, trace=self.trace)


class _FileOption(Generic[_T]):
    """What the path in an option leads to; `value` is None while there is no path, or none that will do."""

    def __init__(
        self, name: str, open_path: Callable[[str], _T], say: Say, close: Callable[[_T], None] = lambda value: None
    ) -> None:
        self._name = name
        self._open = open_path
        self._close = close
        self._say = say
        self._path = ""
        self.value: _T | None = None

    def settle(self, path: str) -> None:
        """Open a path that is new; what was open before is closed first. What cannot be opened is reported."""
        if path == self._path:
            return
        self._path = path
        if self.value is not None:
            self._close(self.value)
            self.value = None
        if path:
            try:
                self.value = self._open(path)
            except PsearchError as error:
                self._say(f"info string {self._name}: {error}")


def _open_prober(path: str) -> RootProber:
    from psearch.notation.syzygy import RootProber

    return RootProber(path)


def _open_book(path: str) -> Book:
    from psearch.notation.polyglot import Book

    return Book(path)


def _trace_path(text: str) -> Path:
    """Raises PsearchError if no trace can be written there."""
    path = Path(text)
    check_trace(path)
    if path.is_fifo():
        raise PsearchError(f"cannot write the trace {text}: it is a pipe, which may have no reader")
    return path
