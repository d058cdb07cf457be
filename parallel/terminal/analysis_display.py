"""What people see of a long analysis, on stderr: a bar with the time left, or a line now and then in a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from psearch.notation.report import relative_text
from psearch.results import Info
from psearch.terminal.display import is_terminal

_LINE_INTERVAL_S = 30.0
_REDRAW_INTERVAL_S = 0.2


class AnalysisProgress:
    """Counts positions; a context manager. total: positions that need a search, those of the journal included.

    The bar has no thread of its own: it is redrawn while a search reports, so that signals and forks find one thread.
    """

    def __init__(self, total: int) -> None:
        self.total = total
        self.done = 0
        self._searched = 0
        self._news = ""
        self._began = time.monotonic()
        self._drawn_at = 0.0
        self._bar: Progress | None = None
        console = Console(file=sys.stderr) if is_terminal(sys.stderr) else None
        if console is not None and not console.is_dumb_terminal:
            self._bar = Progress(
                TextColumn("{task.fields[news]}", markup=False),
                BarColumn(bar_width=None),
                MofNCompleteColumn(),
                TextColumn("{task.fields[left]}", markup=False),
                TextColumn("{task.fields[search]}", markup=False),
                console=console,
                auto_refresh=False,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._task = self._bar.add_task("", total=total, news="", left="", search="")

    def __enter__(self) -> AnalysisProgress:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Take the bar away. May be called twice."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    @contextmanager
    def aside(self) -> Iterator[None]:
        """While something is printed on stdout: without the bar, if both are terminals."""
        hidden = self._bar if is_terminal(sys.stdout) else None
        if hidden is not None:
            hidden.stop()
        yield
        if hidden is not None:
            hidden.start()

    def say(self, news: str) -> None:
        """A few words on how it goes."""
        self._news = news

    def show(self, info: Info) -> None:
        """The search of the present position has reported."""
        now = time.monotonic()
        if self._bar is not None and now - self._drawn_at >= _REDRAW_INTERVAL_S:
            self._drawn_at = now
            search = f"depth {info.depth} {relative_text(info.score.relative)}"
            self._draw(search)

    def advance(self, searched: bool) -> None:
        """One position more has its answer; searched: just now, not in an earlier run."""
        self.done += 1
        self._searched += searched
        now = time.monotonic()
        if self._bar is not None:
            if now - self._drawn_at >= _REDRAW_INTERVAL_S or self.done == self.total:
                self._drawn_at = now
                self._draw("")
        elif now - max(self._drawn_at, self._began) >= _LINE_INTERVAL_S and sys.stderr is not None:
            self._drawn_at = now
            words = [f"{self.done:,}/{self.total:,} positions", self._news, self.time_left()]
            print(", ".join(word for word in words if word), file=sys.stderr, flush=True)

    def time_left(self) -> str:
        """`2:05:00 left`, from the searches of this run; empty before the first."""
        if not self._searched:
            return ""
        seconds = (time.monotonic() - self._began) / self._searched * (self.total - self.done)
        hours, rest = divmod(round(seconds), 3600)
        return f"{hours}:{rest // 60:02}:{rest % 60:02} left"

    def _draw(self, search: str) -> None:
        assert self._bar is not None
        self._bar.update(self._task, completed=self.done, news=self._news, left=self.time_left(), search=search)
        self._bar.refresh()
