"""What people see of a long analysis, on stderr: a bar with the time left, or a line now and then in a log."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console, Group, RenderableType
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from psearch.terminal.shrinkable import ShrinkableLive
from psearch.terminal.streams import can_redraw, is_terminal, printable

_LINE_INTERVAL_S = 30.0
_REDRAW_INTERVAL_S = 0.2


class AnalysisProgress:
    """Counts positions; a context manager. total: positions that need a search, those of the journal included; None:
    nobody knows, and there is no bar. at_work: returns a line about the workers, shown below; empty for none.

    The bar has no thread of its own: it is redrawn when it is told that time goes by, so that signals and forks find
    one thread.
    """

    def __init__(self, total: int | None, at_work: Callable[[], str] = lambda: "") -> None:
        self._at_work = at_work
        self._shown = can_redraw(sys.stderr)
        self._latest = time.monotonic()
        """when something was shown last"""
        self._column = TimeRemainingColumn()
        middle: list[ProgressColumn] = [TextColumn("{task.completed:,} positions")]
        if total is not None:
            middle = [BarColumn(bar_width=None), MofNCompleteColumn(), self._column, TextColumn("left")]
        # steps may take minutes, so the speed is that of all, not of the last 30 seconds
        self._bar = Progress(
            TextColumn("{task.fields[news]}", markup=False),
            *middle,
            TextColumn("{task.fields[speed]}", markup=False),
            speed_estimate_period=math.inf,
            disable=not self._shown,
        )
        self._bar.live = ShrinkableLive(
            console=Console(file=sys.stderr, force_terminal=self._shown or None),
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
            get_renderable=self._lines,
        )
        self._number = self._bar.add_task("", total=total, news="", speed="")
        self._began = time.monotonic()
        self._searched = 0

    def __enter__(self) -> AnalysisProgress:
        self._bar.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Take the bar away. May be called twice."""
        if self._shown:
            self._bar.stop()
            self._shown = False

    @contextmanager
    def aside(self, stream: TextIO | None) -> Iterator[None]:
        """Take the bar away while something is printed on stdout or stderr, if both are terminals."""
        hidden = self._shown and is_terminal(stream)
        if hidden:
            self._bar.stop()
        yield
        if hidden:
            self._bar.start()

    def show_table(self, title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Print a few rows under a title, on stderr, if someone watches it; the first column is cut where it is too
        wide."""
        if not is_terminal(sys.stderr):
            return
        console = Console(file=sys.stderr)
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        others = sum(2 + max(map(len, column)) for column in list(zip(head, *rows, strict=True))[1:])
        room = max(2, console.width - others - 1)  # without that rich would cut the others as well
        table.add_column(Text(head[0]), no_wrap=True, overflow="ellipsis", max_width=room)
        for name in head[1:]:
            table.add_column(Text(name), justify="right", no_wrap=True)
        for row in rows:
            table.add_row(*(Text(printable(cell)) for cell in row))
        with self.aside(sys.stderr):
            console.print(Text(printable(title), no_wrap=True, overflow="ellipsis"))
            console.print(table)

    def say(self, news: str) -> None:
        """Say a few words on how it goes."""
        self._bar.update(self._number, news=printable(news))

    def tick(self) -> None:
        """Time goes by: the bar shows it."""
        if self._shown and time.monotonic() - self._latest >= _REDRAW_INTERVAL_S:
            self._draw()

    def advance(self, searched: bool) -> None:
        """Count a position that has its answer; searched: just now, not in an earlier run."""
        task = self._task
        if searched:
            self._searched += 1
            self._bar.advance(self._number)
        else:
            task.completed += 1  # not by `advance`: what took no time would spoil the estimate
        since = time.monotonic() - self._latest
        if self._shown:
            if since >= _REDRAW_INTERVAL_S or task.remaining == 0:
                self._draw()
        elif since >= _LINE_INTERVAL_S and sys.stderr is not None:
            self._latest = time.monotonic()
            count = f"{task.completed:,}{f'/{task.total:,}' if task.total is not None else ''} positions"
            words = [count, task.fields["news"], self.time_left(), self._speed(), self._at_work()]
            print(", ".join(word for word in words if word), file=sys.stderr, flush=True)

    def time_left(self) -> str:
        """Return `2:05:00 left`, from the searches of this run; empty while nothing is known."""
        return f"{self._column.render(self._task).plain} left" if self._task.time_remaining else ""

    @property
    def _task(self) -> Task:
        return self._bar.tasks[0]

    def _lines(self) -> RenderableType:
        line = self._at_work()
        bar = self._bar.get_renderable()
        return Group(bar, Text(printable(line), no_wrap=True, overflow="ellipsis")) if line else bar

    def _draw(self) -> None:
        self._latest = time.monotonic()
        self._bar.update(self._number, speed=self._speed(), refresh=True)

    def _speed(self) -> str:
        """`12.5/s`, positions that this run has searched, over its whole time; empty while there are none."""
        seconds = time.monotonic() - self._began
        return f"{self._searched / seconds:,.1f}/s" if self._searched and seconds > 0 else ""
