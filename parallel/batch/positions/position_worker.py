"""A worker: an engine that stays warm and searches positions one by one, in a process of its own or on a cluster."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import chess

from psearch.api.api_log import LOG
from psearch.batch.positions.answer import Answer, Choice, Line
from psearch.batch.positions.comparing import LEAST_SEEMING_LOSS, Comparer, loss_of
from psearch.batch.positions.task import Batch, Outcome, Task
from psearch.options import SearchOptions
from psearch.processes.control import SearchControl
from psearch.processes.request import SearchRequest
from psearch.processes.tasks.task_main import Program
from psearch.results import Info, PsearchError, Result, WorkerDied
from psearch.searcher.notices import Notices
from psearch.searcher.searcher import Searcher, Size
from psearch.text.fen import checked_moves
from psearch.text.report import uci_line
from psearch.version import __version__

if TYPE_CHECKING:
    from psearch.text.syzygy import RootProber

_LOOK_INTERVAL_S = 0.1
"""How soon a worker that searches hears of threads that it may use, and of a wish to stop."""
_TELL_INTERVAL_S = 0.2
"""Outcomes that come sooner are sent together: each message wakes the program, and what is done between two searches,
there or here, finds none of its code and data in the processor's caches."""
_COLLECT_INTERVAL_S = 1.0
"""Time between two collections of garbage; a search leaves next to none."""


@dataclass(frozen=True)
class WorkerSettings:
    """Settings that all workers of a pool share; picklable."""

    threads: int = 1
    """worker processes for one position; 1: the worker's own process searches"""
    hash_mb: int = 16
    options: SearchOptions = field(default_factory=SearchOptions)
    syzygy: str = ""
    """folders of endgame tables, asked about the root; empty: none"""


@dataclass(slots=True)
class Searched:
    """A task that has been searched.

    Its outcome is put together when it is wanted, best for many at once: between two searches, when the caches of the
    processor are full of the search, that takes three times as long.
    """

    number: int
    id: str | int
    worker: str
    infos: list[Info] = field(default_factory=list)
    """what the search has reported"""
    result: Result | None = None
    answer: Answer | None = None
    """where it was put together already"""
    error: str | None = None
    tbhits: int = 0

    def outcome(self) -> Outcome:
        """Return what is kept of it."""
        if self.answer is None and self.result is not None:
            self.answer = answer_of(self.result, self.infos, self.tbhits)
        return Outcome(self.number, self.id, self.answer, self.error, self.worker)


class PositionWorker:
    """Does tasks, one at a time; a context manager. name: put into outcomes.

    Raises PsearchError when there is no memory, or no processes where there are to be some.
    """

    def __init__(self, settings: WorkerSettings, name: str = "") -> None:
        settings.options.read_network()  # on another machine the file may hold another network
        self.settings = settings
        self.name = name or str(os.getpid())
        self._control = SearchControl()
        self._threads = settings.threads
        self._is_searching = False
        self._prober: RootProber | None = None
        if settings.syzygy:
            from psearch.text.syzygy import RootProber

            self._prober = RootProber(settings.syzygy)
        self._comparer = Comparer(settings.options)
        self._latest: tuple[chess.Board, Searched] | None = None
        """the task of this list that was searched last"""
        kernels = settings.options.kernels
        size = Size(settings.threads, settings.hash_mb, inline=settings.threads == 1, kernels=kernels)
        self._engine = Searcher(Notices(LOG.warning)).start(size)

    def __enter__(self) -> PositionWorker:
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
                self._control.allow(threads)
            else:
                self._engine.allow(threads)

    def work(self, batch: Batch, on_look: Callable[[], None] | None = None) -> Iterator[Searched]:
        """Yield the tasks of a batch as they are searched; see `search`."""
        for part in batch.parts:
            if part.begins:
                self.forget()
            for number, task in part.tasks:
                yield self.search(number, task, on_look)

    def forget(self) -> None:
        """Forget everything, as if the worker were new: another game follows, or a position by itself."""
        self._engine.forget()
        self._latest = None

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
        board = task.board()
        only = None if task.root_moves is None else [board.parse_uci(move) for move in task.root_moves]
        only = checked_moves(board, only)
        probe = self._prober.probe(board) if self._prober is not None and only is None else None
        if probe is not None:
            only, searched.tbhits = probe.best, probe.hits

        def take(info: Info) -> None:
            if not info.is_live:
                searched.infos.append(info)
            elif on_look is not None:
                on_look()

        request = SearchRequest(
            board,
            task.limits,
            self.settings.options,
            only,
            task.multipv,
            on_info=take,
            control=self._control,
            live_from_s=_LOOK_INTERVAL_S,
            live_interval_s=_LOOK_INTERVAL_S if on_look is not None else float("inf"),
        )
        self._is_searching = True
        try:
            result = self._engine.search(request)
            searched.result = result if probe is None else probe.scored_result(result)
        finally:
            self._is_searching = False
        latest, self._latest = self._latest, (board, searched)
        if task.line:
            searched.answer = answer = answer_of(searched.result, searched.infos, searched.tbhits)
            walk = board.copy(stack=False)
            line = [walk.push_uci(word) for word in task.line]
            if board.legal_moves.count() > 1:
                is_suspect = self._is_suspect(board, line[0], answer, latest)
                compared = self._comparer.compare(board, line, task.limits, on_look, is_suspect)
                searched.answer = replace(answer, compared=compared)

    def _is_suspect(
        self, board: chess.Board, played: chess.Move, answer: Answer, latest: tuple[chess.Board, Searched] | None
    ) -> bool:
        """Tell whether a move may be a mistake, by the scores of this position and of the one after it. It may be, too,
        where that is not the one that was searched before: a journal has had it, or a worker that was lost."""
        if answer.best is None or answer.move(board) == played:
            return False
        after = board.copy(stack=False)
        after.push(played)
        reached = None
        if any(after.legal_moves):
            behind = latest[1].outcome().answer if latest is not None and latest[0] == after else None
            if behind is None:
                return True
            reached = behind.estimate[0]
        return loss_of(board, after, answer.estimate[0], reached) >= LEAST_SEEMING_LOSS


class PositionProcess:
    """A worker in a process of this machine: answers batches, and the question for more threads.

    worker: what searches, made with the settings.
    """

    def __init__(
        self, settings: WorkerSettings, worker: Callable[[WorkerSettings], PositionWorker], program: Program
    ) -> None:
        gc.disable()  # see `_COLLECT_INTERVAL_S`
        self._program = program
        self._searched: list[Searched] = []
        self._told_at = 0.0
        self._collected_at = 0.0
        self._worker = worker(settings)

    def __call__(self, batch: Batch) -> list[Outcome]:
        """Search a batch. Outcomes are sent meanwhile; those that are left over are returned."""
        if self._told_at:
            self._collect()
        for searched in self._worker.work(batch, self._look):
            self._searched.append(searched)
            if time.monotonic() - self._told_at >= _TELL_INTERVAL_S:
                self._program.tell(self._outcomes())
                self._collect()
        return self._outcomes()

    def beside(self, threads: int) -> None:
        """Let so many threads search from now on, since others have nothing to do."""
        self._worker.assist(threads)

    def _look(self) -> None:
        """Send what there is and hear the program; called ten times a second while it searches."""
        self._program.look()
        if self._searched:
            self._program.tell(self._outcomes())
        self._collect()

    def _outcomes(self) -> list[Outcome]:
        """Take those that have not been sent."""
        searched, self._searched = self._searched, []
        self._told_at = time.monotonic()
        return [one.outcome() for one in searched]

    def _collect(self) -> None:
        """Collect garbage, if it is time for that."""
        now = time.monotonic()
        if now - self._collected_at >= _COLLECT_INTERVAL_S:
            gc.collect()
            if not self._collected_at:
                gc.freeze()  # what the first search has imported is no garbage, and need not be looked at again
            self._collected_at = now


def answer_of(result: Result, infos: Iterable[Info], tbhits: int = 0) -> Answer:
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
    return Answer(
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
