"""A hand: an engine that stays warm and answers positions one by one, in a process of its own or in a Ray actor."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import chess
import chess.engine

from psearch.farm.boards import board_of
from psearch.farm.jobs import Batch, Choice, Found, Line, Outcome, Piece, Task
from psearch.notation.fen import checked_moves
from psearch.notation.report import uci_line
from psearch.options import SearchOptions
from psearch.processes.control import SearchControl
from psearch.processes.request import SearchRequest
from psearch.processes.supervisor import Supervisor
from psearch.processes.workers import INLINE
from psearch.results import Info, PsearchError, Result, WorkerDied
from psearch.version import __version__

if TYPE_CHECKING:
    from psearch.notation.syzygy import RootProber

_LOOK_INTERVAL_S = 0.1
"""How soon a hand that searches hears of threads that it may use, and a wish to stop"""


@dataclass(frozen=True)
class HandSettings:
    """What all hands of a farm have alike; picklable."""

    threads: int = 1
    """worker processes for one position; 1: the hand's own process searches"""
    hash_mb: int = 16
    options: SearchOptions = field(default_factory=SearchOptions)
    syzygy: str = ""
    """folders of endgame tables, asked about the root; empty: none"""


class Hand:
    """Answers tasks, one at a time; a context manager. name: put into outcomes.

    Raises PsearchError when there is no memory, or no processes where there are to be some.
    """

    def __init__(self, settings: HandSettings, name: str = "") -> None:
        self.settings = settings
        self.name = name or str(os.getpid())
        self.control = SearchControl()
        self._threads = settings.threads
        self._is_searching = False
        self._is_new = True
        self._prober: RootProber | None = None
        if settings.syzygy:
            from psearch.notation.syzygy import RootProber

            self._prober = RootProber(settings.syzygy)
        self._engine = Supervisor(settings.threads, settings.hash_mb, INLINE if settings.threads == 1 else None)

    def __enter__(self) -> Hand:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the memory back, and end the processes if there are any."""
        self._engine.close()
        if self._prober is not None:
            self._prober.close()

    def assist(self, threads: int) -> None:
        """So many threads may search from now on: the present search, if there is one, and those that follow. They are
        processes of their own then. From `on_look`, or between searches."""
        if threads > self._threads:
            self._threads = threads
            if self._is_searching:
                self.control.allow(threads)
            else:
                self._engine.allow(threads)

    def work(self, batch: Batch, on_look: Callable[[], None] | None = None) -> Iterator[Outcome]:
        """The outcomes of a batch, as they are found; see `answer`."""
        for piece in batch.pieces:
            yield from self._piece(piece, on_look)

    def _piece(self, piece: Piece, on_look: Callable[[], None] | None) -> Iterator[Outcome]:
        if piece.begins:
            self.forget()
        for number, task in piece.tasks:
            yield self.answer(number, task, on_look)

    def forget(self) -> None:
        """What follows is another game, or a position by itself: as if the hand were new."""
        if not self._is_new:
            self._engine.forget()
            self._is_new = True

    def answer(self, number: int, task: Task, on_look: Callable[[], None] | None = None) -> Outcome:
        """Search a position. What is wrong with it is its outcome, too. on_look: called ten times a second.

        Raises WorkerDied when processes are lost again and again and nothing was found.
        """
        try:
            return Outcome(number, task.id, self._found(task, on_look), None, self.name)
        except WorkerDied:
            raise
        except (PsearchError, ValueError) as error:
            return Outcome(number, task.id, None, str(error), self.name)

    def _found(self, task: Task, on_look: Callable[[], None] | None) -> Found:
        board = board_of(task)
        only = None if task.root_moves is None else [board.parse_uci(move) for move in task.root_moves]
        only = checked_moves(board, only)
        tbhits = 0
        if self._prober is not None and only is None:
            probe = self._prober.probe(board)
            if probe is not None:
                only, tbhits = probe.best, probe.hits
        listener = _Listener(board, on_look)
        request = SearchRequest(
            board,
            task.limits,
            self.settings.options,
            only,
            task.multipv,
            on_info=listener,
            control=self.control,
            live_from_s=_LOOK_INTERVAL_S,
            live_interval_s=_LOOK_INTERVAL_S if on_look is not None else float("inf"),
        )
        self._is_new = False
        self._is_searching = True
        try:
            result = self._engine.search(request)
        finally:
            self._is_searching = False
        return found_of(board, result, listener, tbhits)


class _Listener:
    """Notes when the preferred move of a search changes, and its last exact score."""

    def __init__(self, board: chess.Board, on_look: Callable[[], None] | None) -> None:
        self._board = board
        self._on_look = on_look
        self.choices: list[Choice] = []
        self._preferred: chess.Move | None = None
        self.exact: Info | None = None

    def __call__(self, info: Info) -> None:
        if info.is_live:
            if self._on_look is not None:
                self._on_look()
            return
        if info.multipv > 1:
            return
        if info.bound == "exact":
            self.exact = info
        if info.depth > 0 and info.pv:
            self.note(info.pv[0], info)

    def note(self, move: chess.Move, info: Info) -> None:
        if move != self._preferred:
            self._preferred = move
            self.choices.append(Choice(self._board.uci(move), round(info.time_s, 4), info.depth, info.nodes))

    def exact_score(self, move: chess.Move) -> chess.engine.Score | None:
        """The last one, if it is this move's."""
        return self.exact.score.relative if self.exact is not None and self.exact.pv[0] == move else None


def found_of(board: chess.Board, result: Result, listener: _Listener, tbhits: int) -> Found:
    """What is kept of a result."""
    info, best = result.info, result.bestmove
    exact = None
    if best is not None:
        listener.note(best, info)
        exact = listener.exact_score(best) if info.bound != "exact" else None
    return Found(
        best=None if best is None else board.uci(best),
        lines=[_line(board, line) for line in result.lines or [info]],
        nodes=info.nodes,
        time_s=round(info.time_s, 4),
        hashfull=info.hashfull,
        tbhits=tbhits,
        choices=listener.choices,
        exact_cp=None if exact is None else exact.score(),
        exact_mate=None if exact is None else exact.mate(),
        notes=tuple(result.notes),
        version=__version__,
        threads=len(info.workers) or 1,
    )


def _line(board: chess.Board, info: Info) -> Line:
    score = info.score.pov(board.turn)
    return Line(score.score(), score.mate(), info.bound, info.depth, info.seldepth, uci_line(info.pv))
