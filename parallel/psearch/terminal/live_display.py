"""Drawings by rich: the live table of a search, the progress bar of an analysis, a position."""

from __future__ import annotations

import math
import os
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TextIO

import chess
from rich.console import Console, ConsoleDimensions, ConsoleOptions, Group, RenderableType, RenderResult
from rich.control import Control
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn
from rich.progress_bar import ProgressBar
from rich.segment import ControlType, Segment
from rich.table import Table
from rich.text import Text

from psearch.results import Info, WorkerStats
from psearch.terminal.streams import INDENT, can_redraw, folded, is_terminal, printable, text_table
from psearch.text.report import iteration_line, san_line, score_text

_LIGHT, _DARK = "on #d8c3a5", "on #a17a5b"
_PIECE_COLOURS = {chess.WHITE: "bold #ffffff", chess.BLACK: "bold #000000"}
_WITHOUT_REFLOW = ("linux", "rxvt", "screen")
"""Prefixes of `TERM` for terminals that cut lines off in a narrower window. xterm, too, but it sets `XTERM_VERSION`."""
MOST_WORKER_ROWS = 16
"""Most workers with a row each; of more the display shows the mean and the extremes."""
_BAR_WIDTH = 24
_COLUMNS_BESIDE_BAR = 36
_LINES_BESIDE_WORKERS = 6
_SUMMARY_ROWS = 3
_LINE_INTERVAL_S = 30.0
_REDRAW_INTERVAL_S = 0.2


def draw(board: chess.Board) -> None:
    """Draw the position on stdout, White at the bottom: coloured squares if the terminal has colours, else letters.
    Both colours use the filled figures, which are visible on any background."""
    console = Console(file=sys.stdout, highlight=False)
    has_colours = console.is_terminal and console.color_system is not None and not console.no_color
    text = Text()
    for rank in range(7, -1, -1):
        text.append(f"{chess.RANK_NAMES[rank]} ")
        for file in range(8):
            piece = board.piece_at(chess.square(file, rank))
            if not has_colours:
                text.append(f" {piece.symbol() if piece else '.'} ")
                continue
            figure = piece.unicode_symbol(invert_color=piece.color) if piece else " "
            square = _LIGHT if (rank + file) % 2 else _DARK
            text.append(f" {figure} ", f"{_PIECE_COLOURS[piece.color]} {square}" if piece else square)
        text.append("\n")
    console.print(text.append("  " + "".join(f" {name} " for name in chess.FILE_NAMES) + "\n"))


class _MeasuredWidth:
    """Records the width of each row as it is written, since the terminal may be resized a moment later."""

    def __init__(self, renderable: RenderableType, widths: list[int]) -> None:
        self._renderable = renderable
        self._widths = widths

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        rows = console.render_lines(self._renderable, options, pad=False)
        self._widths[:] = [Segment.get_line_length(row) for row in rows[: options.size.height]]
        for row in rows:
            yield from row
            yield Segment.line()


class ShrinkableLive(Live):
    """A Live that also erases the extra rows into which a narrowed terminal has broken its last frame. Most terminals
    rewrap their lines when their width changes, but rich knows only how many rows it wrote."""

    def __init__(self, **options: Any) -> None:
        self._widths: list[int] = []
        """Width of each row of the last frame, in columns."""
        super().__init__(**{"auto_refresh": False, "transient": True, "redirect_stderr": False, **options})
        self._breaks_anew = "XTERM_VERSION" not in os.environ and not os.environ.get("TERM", "").startswith(
            _WITHOUT_REFLOW
        )

    def get_renderable(self) -> RenderableType:
        """Return what rich draws, wrapped to record its width."""
        return _MeasuredWidth(super().get_renderable(), self._widths)

    def refresh(self) -> None:
        """Erase the rows that rich does not know of, then draw. rich calls this for every frame, with the cursor in the
        last row."""
        width = self.console.size.width
        surplus = sum(max(0, columns - 1) // width for columns in self._widths) if self._breaks_anew else 0
        self._widths.clear()
        if surplus:
            row = ((ControlType.CURSOR_UP, 1), (ControlType.ERASE_IN_LINE, 2))
            self.console.control(Control(ControlType.CARRIAGE_RETURN, (ControlType.ERASE_IN_LINE, 2), *row * surplus))
        super().refresh()


def _cut(text: str, width: int, style: str = "") -> Text:
    cut = Text(text, style=style)
    cut.truncate(width, overflow="ellipsis")
    return cut


@contextmanager
def table_display(board: chess.Board, movetime_ms: float | None = None) -> Iterator[Callable[[Info], None]]:
    """Show a search in a table on stdout, redrawn in place. At the end the finished iterations take its place; see
    `search_display`."""
    lines: dict[int, Info] = {}
    finished: dict[int, Info] = {}
    """Last report of the best line at each depth."""

    def show(info: Info) -> None:
        lines[info.multipv] = info
        if info.multipv == 1 and info.bound == "exact":
            finished[info.depth] = info
        others = [lines[number] for number in sorted(lines) if number > 1]
        best = lines.get(1, info)
        earlier = [finished[depth] for depth in sorted(finished, reverse=True) if depth < best.depth]
        live.update(search_view(board, best, live.console.size, others, earlier, movetime_ms), refresh=True)

    with ShrinkableLive(console=Console(file=sys.stdout)) as live:
        yield show
    shown: Info | None = None
    for _, info in sorted(finished.items()):
        if shown is None or (info.score, info.pv) != (shown.score, shown.pv):
            print(folded(iteration_line(board, info), sys.stdout, INDENT), flush=True)
        shown = info


def search_view(
    board: chess.Board,
    info: Info,
    size: ConsoleDimensions,
    others: Sequence[Info] = (),
    earlier: Sequence[Info] = (),
    movetime_ms: float | None = None,
) -> Group:
    """Return the live display as a renderable: the search, a load bar per worker, the finished iterations.

    others: the lines from the second best on; earlier: finished iterations, latest first; both have one row each, as
    far as there is room. movetime_ms: time limit in milliseconds.
    """
    limit = "" if movetime_ms is None else f" of {movetime_ms / 1000:g} s"
    head = Text(
        f"depth {info.depth}/{info.seldepth}   score {score_text(info.score, board, info.bound)}   "
        f"nodes {info.nodes:,}   nps {info.nps:,}   time {info.time_s:.1f} s{limit}"
    )
    head.stylize("bold")
    line = _cut(f"pv {san_line(board, info.pv)}", 2 * size.width)  # at most three lines when wrapped
    more = [
        _cut(f"{one.multipv:2}  {score_text(one.score, board, one.bound)}  {san_line(board, one.pv)}", size.width)
        for one in others[: max(0, size.height - _LINES_BESIDE_WORKERS - 1)]
    ]
    room = size.height - _LINES_BESIDE_WORKERS - len(more) - (len(textwrap.wrap(head.plain, size.width)) - 1)
    below: list[RenderableType] = []
    if info.workers:
        rows = min(MOST_WORKER_ROWS, max(1, room))
        bar_width = min(_BAR_WIDTH, max(2, size.width - _COLUMNS_BESIDE_BAR))
        below.append(_worker_table(info.workers, rows, bar_width))
        room -= len(info.workers) if len(info.workers) <= rows else _SUMMARY_ROWS
    for one in earlier[: max(0, room)]:
        score = score_text(one.score, board, one.bound)
        text = f"depth {one.depth:2}  {score:>7}  {one.time_s:6.1f} s  {san_line(board, one.pv)}"
        below.append(_cut(text, size.width, "dim"))
    return Group(head, line, *more, *below)


def _worker_table(workers: list[WorkerStats], most_rows: int, bar_width: int) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("worker", no_wrap=True)
    table.add_column("load", width=bar_width, no_wrap=True)
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("nodes", justify="right", no_wrap=True)
    rows = [(str(number), 1 - worker.idle_share, worker.nodes) for number, worker in enumerate(workers)]
    if len(workers) > most_rows:
        busiest, idlest = (best(rows, key=lambda row: row[1]) for best in (max, min))
        mean_load = sum(load for _, load, _ in rows) / len(rows)
        mean_nodes = round(sum(nodes for _, _, nodes in rows) / len(rows))
        rows = [
            (f"mean of {len(workers)}", mean_load, mean_nodes),
            (f"busiest, {busiest[0]}", *busiest[1:]),
            (f"idlest, {idlest[0]}", *idlest[1:]),
        ]
    for name, load, nodes in rows:
        load = min(1.0, max(0.0, load))
        bar = ProgressBar(total=1.0, completed=load, width=bar_width)
        table.add_row(name, bar, f"{load:.0%}", f"{nodes:,}")
    return table


class AnalysisProgress:
    """Shows the progress of an analysis on stderr: a bar with the time left, or occasional lines in a log.

    total: positions that need a search, including those in the journal; None if unknown, and there is no bar. at_work:
    returns a line about the workers, shown below; empty for none. A context manager. `tick` redraws the bar instead of
    a thread, so that signals and forks meet only one thread.
    """

    def __init__(self, total: int | None, at_work: Callable[[], str] = lambda: "") -> None:
        self._at_work = at_work
        self._shown = can_redraw(sys.stderr)
        self._began = self._latest = time.monotonic()
        """Time of the latest output."""
        self._searched = 0
        self._column = TimeRemainingColumn()
        middle: list[ProgressColumn] = [TextColumn("{task.completed:,} positions")]
        if total is not None:
            middle = [BarColumn(bar_width=None), MofNCompleteColumn(), self._column, TextColumn("left")]
        # a step may take minutes, so the estimate uses the whole time, not rich's last 30 seconds
        self._bar = Progress(
            TextColumn("{task.fields[news]}", markup=False),
            *middle,
            TextColumn("{task.fields[speed]}", markup=False),
            speed_estimate_period=math.inf,
            disable=not self._shown,
        )
        console = Console(file=sys.stderr, force_terminal=self._shown or None)
        self._bar.live = ShrinkableLive(console=console, redirect_stdout=False, get_renderable=self._lines)
        self._bar.add_task("", total=total, news="", speed="")
        self._task = self._bar.tasks[0]

    def __enter__(self) -> AnalysisProgress:
        self._bar.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove the bar. May be called twice."""
        if self._shown:
            self._bar.stop()
            self._shown = False

    @contextmanager
    def aside(self, stream: TextIO | None) -> Iterator[None]:
        """Hide the bar while something is printed on the stream, if both are terminals."""
        hidden = self._shown and is_terminal(stream)
        if hidden:
            self._bar.stop()
        yield
        if hidden:
            self._bar.start()

    def show_table(self, title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Print a short table on stderr if that is a terminal; a first column that is too wide is cut."""
        if not is_terminal(sys.stderr):
            return
        width = Console(file=sys.stderr).width
        others = sum(2 + max(map(len, column)) for column in list(zip(head, *rows, strict=True))[1:])
        room = max(2, width - others - 1)
        head, *rows = [(_cut(printable(first), room).plain, *rest) for first, *rest in (head, *rows)]
        with self.aside(sys.stderr):
            print(_cut(printable(title), width).plain, text_table(head, rows), sep="\n", file=sys.stderr, flush=True)

    def say(self, news: str) -> None:
        """Set the words shown beside the bar."""
        self._bar.update(self._task.id, news=printable(news))

    def tick(self) -> None:
        """Redraw the bar if it is due."""
        if self._shown and time.monotonic() - self._latest >= _REDRAW_INTERVAL_S:
            self._draw()

    def advance(self, searched: bool) -> None:
        """Count an answered position. searched: it was searched in this run."""
        task = self._task
        if searched:
            self._searched += 1
            self._bar.advance(self._task.id)
        else:
            task.completed += 1  # not by `advance`, since it took no time and would spoil the estimate
        if self._shown and task.remaining == 0:
            self._draw()
        self.tick()
        if not self._shown and time.monotonic() - self._latest >= _LINE_INTERVAL_S and sys.stderr is not None:
            self._latest = time.monotonic()
            count = f"{task.completed:,}{f'/{task.total:,}' if task.total is not None else ''} positions"
            left = f"{self._column.render(task).plain} left" if task.time_remaining else ""
            words = [count, task.fields["news"], left, self._speed(), self._at_work()]
            print(", ".join(word for word in words if word), file=sys.stderr, flush=True)

    def _lines(self) -> RenderableType:
        line = self._at_work()
        bar = self._bar.get_renderable()
        return Group(bar, Text(printable(line), no_wrap=True, overflow="ellipsis")) if line else bar

    def _draw(self) -> None:
        self._latest = time.monotonic()
        self._bar.update(self._task.id, speed=self._speed(), refresh=True)

    def _speed(self) -> str:
        """Return the positions searched per second in this run, such as `12.5/s`; empty while there are none."""
        seconds = time.monotonic() - self._began
        return f"{self._searched / seconds:,.1f}/s" if self._searched and seconds > 0 else ""
