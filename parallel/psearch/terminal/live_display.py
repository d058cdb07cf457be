"""The live table of a search on a terminal: the search on top, one load bar per worker, the finished iterations."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Sequence

import chess
from rich.console import Console, ConsoleDimensions, Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from psearch.results import Info, WorkerStats
from psearch.terminal.shrinkable import ShrinkableLive
from psearch.text.report import san_line, score_text

MOST_WORKER_ROWS = 16
"""With more workers than this the display shows the extremes and the mean instead of one row each."""

_BAR_WIDTH = 24
_COLUMNS_BESIDE_BAR = 36
_LINES_BESIDE_WORKERS = 6
_SUMMARY_ROWS = 3


class LiveDisplay:
    """A table on stdout that is redrawn in place and removed at the end; a context manager."""

    def __init__(self, board: chess.Board, movetime_ms: float | None = None) -> None:
        self._board = board
        self._movetime_ms = movetime_ms
        self._console = Console(file=sys.stdout)
        self._lines: dict[int, Info] = {}
        self._finished: dict[int, Info] = {}
        """the best line of each depth, the last report of it"""
        self._live = ShrinkableLive(console=self._console, auto_refresh=False, transient=True, redirect_stderr=False)

    def __enter__(self) -> LiveDisplay:
        self._live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._live.stop()

    def __call__(self, info: Info) -> None:
        """Redraw."""
        self._lines[info.multipv] = info
        if info.multipv == 1 and info.bound == "exact":
            self._finished[info.depth] = info
        others = [self._lines[number] for number in sorted(self._lines) if number > 1]
        best = self._lines.get(1, info)
        earlier = [self._finished[depth] for depth in sorted(self._finished, reverse=True) if depth < best.depth]
        size = self._console.size
        self._live.update(search_view(self._board, best, size, others, earlier, self._movetime_ms), refresh=True)


def search_view(
    board: chess.Board,
    info: Info,
    size: ConsoleDimensions,
    others: Sequence[Info] = (),
    earlier: Sequence[Info] = (),
    movetime_ms: float | None = None,
) -> Group:
    """Return the live display as a renderable: the search on top, one load bar per worker, the finished iterations.

    others: the second best line and those after it; earlier: finished iterations, the last one first; one row each,
    as many as there is room for. movetime_ms: the time that the search may take.
    """
    limit = "" if movetime_ms is None else f" of {movetime_ms / 1000:g} s"
    head = Text(
        f"depth {info.depth}/{info.seldepth}   score {score_text(info.score, board, info.bound)}   "
        f"nodes {info.nodes:,}   nps {info.nps:,}   time {info.time_s:.1f} s{limit}"
    )
    head.stylize("bold")
    line = Text(f"pv {san_line(board, info.pv)}")
    line.truncate(2 * size.width, overflow="ellipsis")  # three lines at most when broken at blanks
    more = [
        _other_line(board, other, size.width) for other in others[: max(0, size.height - _LINES_BESIDE_WORKERS - 1)]
    ]
    room = size.height - _LINES_BESIDE_WORKERS - len(more) - (len(textwrap.wrap(head.plain, size.width)) - 1)
    below: list[RenderableType] = []
    if info.workers:
        rows = min(MOST_WORKER_ROWS, max(1, room))
        bar_width = min(_BAR_WIDTH, max(2, size.width - _COLUMNS_BESIDE_BAR))
        below.append(_worker_table(info.workers, rows, bar_width))
        room -= len(info.workers) if len(info.workers) <= rows else _SUMMARY_ROWS
    below += [_earlier_line(board, one, size.width) for one in earlier[: max(0, room)]]
    return Group(head, line, *more, *below)


def _earlier_line(board: chess.Board, info: Info, width: int) -> Text:
    score = score_text(info.score, board, info.bound)
    text = Text(f"depth {info.depth:2}  {score:>7}  {info.time_s:6.1f} s  {san_line(board, info.pv)}", style="dim")
    text.truncate(width, overflow="ellipsis")
    return text


def _other_line(board: chess.Board, info: Info, width: int) -> Text:
    text = Text(f"{info.multipv:2}  {score_text(info.score, board, info.bound)}  {san_line(board, info.pv)}")
    text.truncate(width, overflow="ellipsis")
    return text


def _worker_table(workers: list[WorkerStats], most_rows: int, bar_width: int) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("worker", no_wrap=True)
    table.add_column("load", width=bar_width, no_wrap=True)
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("nodes", justify="right", no_wrap=True)
    if len(workers) <= most_rows:
        rows = [(str(number), 1 - worker.idle_share, worker.nodes) for number, worker in enumerate(workers)]
    else:
        rows = _summary_rows(workers)
    for name, load, nodes in rows:
        load = min(1.0, max(0.0, load))
        bar = ProgressBar(total=1.0, completed=load, width=bar_width)
        table.add_row(name, bar, f"{load:.0%}", f"{nodes:,}")
    return table


def _summary_rows(workers: list[WorkerStats]) -> list[tuple[str, float, int]]:
    idlest = max(range(len(workers)), key=lambda number: workers[number].idle_share)
    busiest = min(range(len(workers)), key=lambda number: workers[number].idle_share)
    mean_load = 1 - sum(worker.idle_share for worker in workers) / len(workers)
    mean_nodes = round(sum(worker.nodes for worker in workers) / len(workers))
    return [
        (f"mean of {len(workers)}", mean_load, mean_nodes),
        (f"busiest, {busiest}", 1 - workers[busiest].idle_share, workers[busiest].nodes),
        (f"idlest, {idlest}", 1 - workers[idlest].idle_share, workers[idlest].nodes),
    ]
