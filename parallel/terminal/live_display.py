"""The live table of a search on a terminal: the search on top, one load bar per worker below."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import chess
from rich.console import Console, ConsoleDimensions, Group
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from psearch.notation.report import san_line, score_text
from psearch.results import Info, WorkerStats
from psearch.terminal.shrinkable import ShrinkableLive

MOST_WORKER_ROWS = 16
"""With more workers than this the display shows the extremes and the mean instead of one row each."""

_BAR_WIDTH = 24
_COLUMNS_BESIDE_BAR = 36
_LINES_BESIDE_WORKERS = 6


class LiveDisplay:
    """A table on stdout that is redrawn in place and removed at the end; a context manager."""

    def __init__(self, board: chess.Board) -> None:
        self._board = board
        self._console = Console(file=sys.stdout)
        self._lines: dict[int, Info] = {}
        self._live = ShrinkableLive(console=self._console, auto_refresh=False, transient=True, redirect_stderr=False)

    def __enter__(self) -> LiveDisplay:
        self._live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._live.stop()

    def __call__(self, info: Info) -> None:
        """Redraw."""
        self._lines[info.multipv] = info
        others = [self._lines[number] for number in sorted(self._lines) if number > 1]
        self._live.update(search_view(self._board, self._lines.get(1, info), self._console.size, others), refresh=True)


def search_view(board: chess.Board, info: Info, size: ConsoleDimensions, others: Sequence[Info] = ()) -> Group:
    """The live display as a renderable: the search on top, one load bar per worker below.

    others: the second best line and those after it; one row each, as many as there is room for.
    """
    head = Text(
        f"depth {info.depth}/{info.seldepth}   score {score_text(info.score, board, info.bound)}   "
        f"nodes {info.nodes:,}   nps {info.nps:,}   time {info.time_s:.1f} s"
        + f"   machines {info.machines}"
        * (info.machines > 1)
    )
    head.stylize("bold")
    line = Text(f"pv {san_line(board, info.pv)}")
    line.truncate(2 * size.width, overflow="ellipsis")  # three lines at most when broken at blanks
    more = [
        _other_line(board, other, size.width) for other in others[: max(0, size.height - _LINES_BESIDE_WORKERS - 1)]
    ]
    if not info.workers:
        return Group(head, line, *more)
    rows = min(MOST_WORKER_ROWS, max(1, size.height - _LINES_BESIDE_WORKERS - len(more)))
    bar_width = min(_BAR_WIDTH, max(2, size.width - _COLUMNS_BESIDE_BAR))
    return Group(head, line, *more, _worker_table(info.workers, rows, bar_width))


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
