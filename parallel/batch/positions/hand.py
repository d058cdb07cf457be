"""A hand: an engine that stays warm and answers positions one by one, in a process of its own or in a Ray actor."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import chess
import chess.engine

from psearch.api.api_log import LOG
from psearch.batch.positions.boards import board_of
from psearch.batch.positions.comparing import LEAST_SEEMING_LOSS, Comparer, estimate_of, loss_of
from psearch.batch.positions.jobs import Batch, Choice, Found, Line, Outcome, Task
from psearch.options import SearchOptions
from psearch.processes.control import SearchControl
from psearch.processes.request import SearchRequest
from psearch.results import Info, PsearchError, Result, WorkerDied
from psearch.searcher.notices import Notices
from psearch.searcher.searcher import Searcher, Size
from psearch.text.fen import checked_moves
from psearch.text.report import uci_line
from psearch.version import __version__

if TYPE_CHECKING:
    from psearch.text.syzygy import RootProber

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
        settings.options.read_network()  # on another machine the file may hold another network
        self.settings = settings
        self.name = name or str(os.getpid())
        self.control = SearchControl()
        self._threads = settings.threads
        self._is_searching = False
        self._prober: RootProber | None = None
        if settings.syzygy:
            from psearch.text.syzygy import RootProber

            self._prober = RootProber(settings.syzygy)
        self._comparer = Comparer(settings.options)
        self._latest: tuple[chess.Board, Searched] | None = None
        """what was searched last in this chain"""
        kernels = settings.options.kernels
        size = Size(settings.threads, settings.hash_mb, inline=settings.threads == 1, kernels=kernels)
        self._engine = Searcher(Notices(LOG.warning)).start(size)

    def __enter__(self) -> Hand:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the memory back, and end the processes if there are any."""
        self._engine.close()
        self._comparer.close()
        if self._prober is not None:
            self._prober.close()

    def assist(self, threads: int) -> None:
        """Let so many threads search from now on: the present search, if there is one, and those that follow. They are
        processes of their own then. From `on_look`, or between searches."""
        if threads > self._threads:
            self._threads = threads
            if self._is_searching:
                self.control.allow(threads)
            else:
                self._engine.supervisor.allow(threads)

    def work(self, batch: Batch, on_look: Callable[[], None] | None = None) -> Iterator[Outcome]:
        """Return the outcomes of a batch, as they are found; see `search`."""
        return (searched.outcome() for searched in self.searches(batch, on_look))

    def searches(self, batch: Batch, on_look: Callable[[], None] | None = None) -> Iterator[Searched]:
        """Yield the searches, for who puts outcomes together later."""
        for piece in batch.pieces:
            if piece.begins:
                self.forget()
            for number, task in piece.tasks:
                yield self.search(number, task, on_look)

    def forget(self) -> None:
        """Forget everything, as if the hand were new: another game follows, or a position by itself."""
        self._engine.supervisor.forget()
        self._latest = None

    def answer(self, number: int, task: Task, on_look: Callable[[], None] | None = None) -> Outcome:
        """Return the outcome of a task; see `search`."""
        return self.search(number, task, on_look).outcome()

    def search(self, number: int, task: Task, on_look: Callable[[], None] | None = None) -> Searched:
        """Search a position. What is wrong with it is its outcome, too. on_look: called ten times a second.

        Raises WorkerDied when processes are lost again and again and nothing was found.
        """
        searched = Searched(number, task.id, self.name)
        try:
            self._search(searched, task, on_look)
        except WorkerDied:
            raise
        except (PsearchError, ValueError) as error:
            searched.error = str(error)
        return searched

    def _search(self, searched: Searched, task: Task, on_look: Callable[[], None] | None) -> None:
        board = board_of(task)
        only = None if task.root_moves is None else [board.parse_uci(move) for move in task.root_moves]
        only = checked_moves(board, only)
        probe = self._prober.probe(board) if self._prober is not None and only is None else None
        if probe is not None:
            only, searched.tbhits = probe.best, probe.hits
        request = SearchRequest(
            board,
            task.limits,
            self.settings.options,
            only,
            task.multipv,
            on_info=searched.infos.append if on_look is None else _listener(searched.infos, on_look),
            control=self.control,
            live_from_s=_LOOK_INTERVAL_S,
            live_interval_s=_LOOK_INTERVAL_S if on_look is not None else float("inf"),
        )
        self._is_searching = True
        try:
            result = self._engine.supervisor.search(request)
            searched.result = result if probe is None else probe.scored_result(result)
        finally:
            self._is_searching = False
        latest, self._latest = self._latest, (board, searched)
        if task.line:
            searched.found = found_of(searched.result, searched.infos, searched.tbhits)
            line = _moves(board, task.line)
            if board.legal_moves.count() > 1:
                is_suspect = self._is_suspect(board, line[0], searched.found, latest)
                compared = self._comparer.compare(board, line, task.limits, on_look, is_suspect)
                searched.found = replace(searched.found, compared=compared)

    def _is_suspect(
        self, board: chess.Board, played: chess.Move, found: Found, latest: tuple[chess.Board, Searched] | None
    ) -> bool:
        """By the scores of this position and of the one after the move. It is, too, where that is not the one that was
        searched before: where a journal has had it, or a hand that was lost."""
        if found.best is None or board.parse_uci(found.best) == played:
            return False
        after = board.copy(stack=False)
        after.push(played)
        reached = None
        if any(after.legal_moves):
            behind = latest[1].outcome().found if latest is not None and latest[0] == after else None
            if behind is None:
                return True
            reached = _estimate(behind)
        return loss_of(board, after, _estimate(found), reached) >= LEAST_SEEMING_LOSS


def _moves(board: chess.Board, words: Iterable[str]) -> list[chess.Move]:
    walk = board.copy(stack=False)
    return [walk.push_uci(word) for word in words]


def _estimate(found: Found) -> chess.engine.Score:
    best = found.lines[0]
    return estimate_of(best.cp, best.mate, best.bound, found.exact_cp, found.exact_mate)[0]


def _listener(infos: list[Info], on_look: Callable[[], None]) -> Callable[[Info], None]:
    """Keeps what is new, and looks."""

    def take(info: Info) -> None:
        if info.is_live:
            on_look()
        else:
            infos.append(info)

    return take


class Searched:
    """A task that has been searched.

    Its outcome is put together when it is wanted, best for many at once: between two searches, when the caches of the
    processor are full of the search, that takes three times as long.
    """

    __slots__ = ("error", "found", "hand", "id", "infos", "number", "result", "tbhits")

    def __init__(self, number: int, id: str | int, hand: str) -> None:
        self.number = number
        self.id = id
        self.hand = hand
        self.infos: list[Info] = []
        """what the search has reported"""
        self.result: Result | None = None
        self.found: Found | None = None
        """where it was put together already"""
        self.error: str | None = None
        self.tbhits = 0

    def outcome(self) -> Outcome:
        """Return what is kept of it."""
        if self.found is None and self.result is not None:
            self.found = found_of(self.result, self.infos, self.tbhits)
        return Outcome(self.number, self.id, self.found, self.error, self.hand)


def found_of(result: Result, infos: Iterable[Info], tbhits: int = 0) -> Found:
    """Return what is kept of a result, and of the reports before it."""
    info, best = result.info, result.bestmove
    choices: list[Choice] = []
    preferred = exact = None
    for report in infos:
        if report.multipv > 1:
            continue
        if report.bound == "exact":
            exact = report
        if report.depth > 0 and report.pv and report.pv[0] != preferred:
            preferred = report.pv[0]
            choices.append(_choice(preferred, report))
    score = None
    if best is not None:
        if best != preferred:
            choices.append(_choice(best, info))
        if info.bound != "exact" and exact is not None and exact.pv[0] == best:
            score = exact.score.relative
    return Found(
        best=None if best is None else best.uci(),
        lines=[_line(line) for line in result.lines or [info]],
        nodes=info.nodes,
        time_s=round(info.time_s, 4),
        hashfull=info.hashfull,
        tbhits=tbhits,
        choices=choices,
        exact_cp=None if score is None else score.score(),
        exact_mate=None if score is None else score.mate(),
        notes=tuple(result.notes),
        version=__version__,
        threads=len(info.workers) or 1,
    )


def _choice(move: chess.Move, info: Info) -> Choice:
    return Choice(move.uci(), round(info.time_s, 4), info.depth, info.nodes)


def _line(info: Info) -> Line:
    score = info.score.relative
    return Line(score.score(), score.mate(), info.bound, info.depth, info.seldepth, uci_line(info.pv))
