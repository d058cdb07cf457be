"""What stdout shows of a search while it runs: a live table on a terminal, else lines."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager

import chess

from psearch.results import Info
from psearch.terminal.streams import can_redraw, folded
from psearch.text.report import iteration_line

_INDENT = 4


def search_display(
    board: chess.Board, movetime_ms: float | None = None
) -> AbstractContextManager[Callable[[Info], None]]:
    """Return the live table where stdout is a terminal that can move its cursor, else plain lines.

    movetime_ms: the time that the search may take, if it is limited by that.
    """
    if not can_redraw(sys.stdout):
        return LineDisplay(board)
    from psearch.terminal.live_display import LiveDisplay  # rich takes long to import

    return LiveDisplay(board, movetime_ms)


class LineDisplay:
    """One line on stdout for each completed iteration and each aspiration window that failed."""

    def __init__(self, board: chess.Board) -> None:
        self._board = board
        self._shown: dict[int, tuple[object, ...]] = {}

    def __enter__(self) -> LineDisplay:
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    def __call__(self, info: Info) -> None:
        """Print `info` unless only its clocks and counters are new."""
        news = (info.depth, info.bound, info.score, tuple(info.pv))
        if info.depth > 0 and news != self._shown.get(info.multipv):
            self._shown[info.multipv] = news
            print(folded(iteration_line(self._board, info), sys.stdout, _INDENT), flush=True)
