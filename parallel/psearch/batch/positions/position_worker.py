"""A worker: an engine that stays warm and searches positions one by one, in a process of its own or on a cluster."""

from __future__ import annotations

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
    from psearch.text.chess_files import RootProber

_LOOK_INTERVAL_S = 0.1
"""How soon a worker that searches hears of threads that it may use, and of a wish to stop."""
_TELL_INTERVAL_S = 0.2
"""Outcomes that come sooner are sent together: each message wakes the program."""


@dataclass(frozen=True)
class WorkerSettings:
    """Settings that all workers of a pool share; picklable."""

    threads: int = 1
    """worker processes for one position; 1: the worker's own process searches"""
    hash_mb: int = 16
    options: SearchOptions = field(default_factory=SearchOptions)
    syzygy: str = ""
    """folders of endgame tables, asked about the root; empty: none"""


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
            from psearch.text.chess_files import RootProber

            self._prober = RootProber(settings.syzygy)
        self._comparer = Comparer(settings.options)
        self._latest: tuple[chess.Board, Answer] | None = None
        """the position of this list that was searched last"""
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
                self._engine.supervisor.allow(threads)

    def work(self, batch: Batch, on_look: Callable[[], None] | None = None) -> Iterator[Outcome]:
        """Yield the outcomes of a batch as they are found; see `search`."""
        for part in batch.parts:
            if part.begins:
                self.forget()
            for number, task in part.tasks:
                yield self.search(number, task, on_look)

    def forget(self) -> None:
        """Forget everything, as if the worker were new: another game follows, or a position by itself."""
        self._engine.supervisor.forget()
        self._latest = None

    def search(self, number: int, task: Task, on_look: Callable[[], None] | None = None) -> Outcome:
        """Search a position. What is wrong with it is its outcome, too. on_look: called ten times a second.

        Raises WorkerDied when processes are lost again and again and nothing was found.
        """
        try:
            return Outcome(number, task.id, self._answer(task, on_look), None, self.name)
        except WorkerDied:
            raise
        except (PsearchError, ValueError) as error:
            return Outcome(number, task.id, None, str(error), self.name)

    def _answer(self, task: Task, on_look: Callable[[], None] | None) -> Answer:
        board = task.board()
        only = None if task.root_moves is None else [board.parse_uci(move) for move in task.root_moves]
        only = checked_moves(board, only)
        probe = self._prober.probe(board) if self._prober is not None and only is None else None
        if probe is not None:
            only = probe.best
        infos: list[Info] = []

        def take(info: Info) -> None:
            if not info.is_live:
                infos.append(info)
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
            result = self._engine.supervisor.search(request)
        finally:
            self._is_searching = False
        answer = (
            answer_of(result, infos) if probe is None else answer_of(probe.scored_result(result), infos, probe.hits)
        )
        latest, self._latest = self._latest, (board, answer)
        if not task.line or board.legal_moves.count() <= 1:
            return answer
        walk = board.copy(stack=False)
        line = [walk.push_uci(word) for word in task.line]
        is_suspect = self._is_suspect(board, line[0], answer, latest)
        compared = self._comparer.compare(board, line, task.limits, on_look, is_suspect)
        return replace(answer, compared=compared)

    def _is_suspect(
        self, board: chess.Board, played: chess.Move, answer: Answer, latest: tuple[chess.Board, Answer] | None
    ) -> bool:
        """Tell whether a move may be a mistake, by the scores of this position and of the one after it. It may be, too,
        where that is not the one that was searched before: a journal has had it, or a worker that was lost."""
        if answer.best is None or answer.move(board) == played:
            return False
        after = board.copy(stack=False)
        after.push(played)
        reached = None
        if any(after.legal_moves):
            if latest is None or latest[0] != after:
                return True
            reached = latest[1].estimate[0]
        return loss_of(board, after, answer.estimate[0], reached) >= LEAST_SEEMING_LOSS


class PositionProcess:
    """A worker in a process of this machine: answers batches, and the question for more threads.

    worker: what searches, made with the settings.
    """

    def __init__(
        self, settings: WorkerSettings, worker: Callable[[WorkerSettings], PositionWorker], program: Program
    ) -> None:
        self._program = program
        self._outcomes: list[Outcome] = []
        self._told_at = 0.0
        self._worker = worker(settings)

    def __call__(self, batch: Batch) -> list[Outcome]:
        """Search a batch. Outcomes are sent meanwhile; those that are left over are returned."""
        for outcome in self._worker.work(batch, self._look):
            self._outcomes.append(outcome)
            if time.monotonic() - self._told_at >= _TELL_INTERVAL_S:
                self._program.tell(self._taken())
        return self._taken()

    def beside(self, threads: int) -> None:
        """Let so many threads search from now on, since others have nothing to do."""
        self._worker.assist(threads)

    def _look(self) -> None:
        """Send what there is and hear the program; called ten times a second while it searches."""
        self._program.look()
        if self._outcomes:
            self._program.tell(self._taken())

    def _taken(self) -> list[Outcome]:
        """Take those that have not been sent."""
        outcomes, self._outcomes = self._outcomes, []
        self._told_at = time.monotonic()
        return outcomes


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
