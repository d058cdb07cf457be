"""Shows a running search on stdout: as a live table on a terminal, else as lines."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import chess

from psearch.results import Info
from psearch.terminal.streams import INDENT, can_redraw, folded
from psearch.text.report import iteration_line


def search_display(
    board: chess.Board, movetime_ms: float | None = None
) -> AbstractContextManager[Callable[[Info], None]]:
    """Return a live table if stdout is a terminal that can move its cursor, else plain lines. movetime_ms: time limit
    of the search in milliseconds, if it has one."""
    if not can_redraw(sys.stdout):
        return nullcontext(line_display(board))
    from psearch.terminal.live_display import table_display  # a slow import: rich

    return table_display(board, movetime_ms)


def line_display(board: chess.Board) -> Callable[[Info], None]:
    """Return a function that prints a line on stdout for each completed iteration and each failed aspiration window.
    Reports that differ only in clocks and counters print nothing."""
    shown: dict[int, tuple[object, ...]] = {}

    def show(info: Info) -> None:
        news = (info.depth, info.bound, info.score, tuple(info.pv))
        if info.depth > 0 and news != shown.get(info.multipv):
            shown[info.multipv] = news
            print(folded(iteration_line(board, info), sys.stdout, INDENT), flush=True)

    return show
