"""The files that options name: endgame tables, a book, and where a trace goes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from psearch.results import PsearchError
from psearch.searcher.notices import Notices
from psearch.trace.trace_file import check_trace

if TYPE_CHECKING:
    from psearch.text.polyglot import Book
    from psearch.text.syzygy import RootProber

_T = TypeVar("_T")
_Found = TypeVar("_Found")


class FileOption(Generic[_T]):
    """What the path in an option leads to; `value` is None while there is no path, or none that will do.

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
            self._try()

    def retry(self) -> None:
        """Open again what failed, if anything did."""
        if self._path and self.value is None:
            self._try()

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

    def _try(self) -> None:
        if self._path:
            try:
                self.value = self._open(self._path)
            except PsearchError as error:
                self._notices.fails(self._name, f"{self._name}: {error}; going on without")

    def _switch_off(self) -> None:
        if self.value is not None:
            self._close(self.value)
            self.value = None


def open_prober(path: str, tell: Callable[[str], None]) -> RootProber:
    """Return endgame tables; what is wrong with some of them is told. Raises PsearchError when there are none."""
    from psearch.text.syzygy import RootProber

    prober = RootProber(path)
    for problem in prober.problems:
        tell(f"SyzygyPath: {problem}")
    return prober


def open_book(path: str) -> Book:
    """Return an opening book. Raises PsearchError."""
    from psearch.text.polyglot import Book

    return Book(path)


def trace_path(text: str) -> Path:
    """Return where a trace goes. Raises PsearchError if none can be written there."""
    path = Path(text)
    check_trace(path)
    if path.exists() and not path.is_file():
        kind = "a pipe, which may have no reader" if path.is_fifo() else "a device"
        raise PsearchError(f"cannot write the trace {text}: it is {kind}")
    return path
