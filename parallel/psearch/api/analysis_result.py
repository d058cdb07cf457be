"""A search in the background, for threads: what `chess.engine.SimpleAnalysisResult` is for other engines."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator

import chess.engine

from psearch.arena.system_calls import Owner
from psearch.processes.control import SearchControl
from psearch.results import Result

OnFound = Callable[[chess.engine.InfoDict, bool], None]
"""Takes an info that is wanted, and whether only its counters are new."""
OnEnd = Callable[[Result | None, BaseException | None], None]
"""Takes the answer, or what went wrong."""


class Analysis:
    """A search in the background. Iterate over its infos; they end when the search does. A context manager.

    Made by `Engine.analysis`. What goes wrong in the search is raised where its infos are awaited.
    """

    multipv: list[chess.engine.InfoDict]
    """the latest of each line, best first; the counters of the first are present"""

    def __init__(
        self, control: SearchControl, start: Callable[[OnFound, OnEnd], threading.Thread], owner: Owner
    ) -> None:
        self._owner = owner
        self.multipv = [{}]
        self._infos: queue.SimpleQueue[chess.engine.InfoDict | None] = queue.SimpleQueue()
        self._control = control
        self._result: Result | None = None
        self._error: BaseException | None = None
        self._has_ended = False
        """the search; the mark of its end is in the queue, or soon will be"""
        self._is_over = False
        """the iteration"""
        self._is_raised = False
        self._thread = start(self._take, self._end)

    @property
    def info(self) -> chess.engine.InfoDict:
        """The latest of the best line, with present counters."""
        return self.multipv[0]

    def _take(self, info: chess.engine.InfoDict, is_live: bool) -> None:
        """Called in the searching thread for each report."""
        keep_latest(self.multipv, info)
        if not is_live:
            self._infos.put(info)

    def _end(self, result: Result | None, error: BaseException | None) -> None:
        self._result, self._error, self._has_ended = result, error, True
        self._infos.put(None)

    def stop(self) -> None:
        """End the search; the iteration ends with what was found by then."""
        if self._owner.is_here:
            self._control.stop()

    def wait(self) -> chess.engine.BestMove:
        """Wait for the end of the search: its move and the expected reply."""
        self._check_owner()
        self._thread.join()
        if self._error is not None:
            self._is_raised = True
            raise self._error
        if self._result is None:
            raise AssertionError("a search ended without result or error")
        return chess.engine.BestMove(self._result.bestmove, self._result.ponder)

    def join(self) -> None:
        """Wait for the end of the search, whatever it was."""
        self._thread.join()

    def _check_owner(self) -> None:
        """Raise PsearchError in a fork of the program: the thread that searches is not there."""
        if not self._has_ended:
            self._owner.check()

    def get(self) -> chess.engine.InfoDict:
        """Wait for the next info. Raises `chess.engine.AnalysisComplete` when there are no more."""
        self._check_owner()
        info = None if self._is_over else self._infos.get()
        if info is not None:
            return info
        if not self._is_over:
            self._is_over = True
            self.wait()
        raise chess.engine.AnalysisComplete

    def next(self) -> chess.engine.InfoDict | None:
        """Wait for the next info; None when there are no more."""
        try:
            return self.get()
        except chess.engine.AnalysisComplete:
            return None

    def would_block(self) -> bool:
        """Tell whether `get` would have to wait."""
        return not self._is_over and self._infos.empty()

    def empty(self) -> bool:
        """Tell whether every info there is has been taken; while the search goes on more may come."""
        return self._is_over or self._infos.qsize() <= self._has_ended

    def __iter__(self) -> Iterator[chess.engine.InfoDict]:
        return self

    def __next__(self) -> chess.engine.InfoDict:
        try:
            return self.get()
        except chess.engine.AnalysisComplete:
            raise StopIteration from None

    def __enter__(self) -> Analysis:
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()
        self._thread.join()
        if exception[0] is None and not self._is_raised:
            self.wait()  # raises what went wrong, if anything


def keep_latest(lines: list[chess.engine.InfoDict], info: chess.engine.InfoDict) -> None:
    """Put an info into its place: it replaces the line's last one, whose bound, say, is over."""
    number = info.get("multipv", 1)
    lines.extend({} for _ in range(number - len(lines)))
    lines[number - 1] = info.copy()
