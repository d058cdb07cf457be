"""Worker processes that search positions, on this machine or on a cluster (docs/guides/cluster.md), and the loop that
gives them work."""

from __future__ import annotations

import math
import os
import pickle
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

import chess

from psearch.api import LOG
from psearch.arena.blocks import MIB
from psearch.arena.control_groups import available_memory
from psearch.batch.positions.comparing import LEAST_SEEMING_LOSS, Comparer, scores_around
from psearch.batch.positions.task import Answer, Batch, Choice, Line, Outcome, Pause, Task, TaskList
from psearch.batch.positions.task_queue import Done, Event, TaskQueue
from psearch.closing import Closing
from psearch.options import SearchOptions
from psearch.processes.control import SearchControl
from psearch.processes.request import SearchRequest
from psearch.processes.task_processes import TaskProcesses
from psearch.processes.tasks import Answered, BackEnd, ProcessJoined, ProcessLost, Program, Raised, Told, error_of
from psearch.results import Info, PsearchError, Result, WorkerDied
from psearch.scheduler.scheduler_entries import SEARCH, load_kernels
from psearch.searcher.notices import Notices
from psearch.searcher.root import Root
from psearch.searcher.searcher import Searcher, Size
from psearch.text.fen import checked_moves
from psearch.text.report import uci_line
from psearch.version import __version__

if TYPE_CHECKING:
    from psearch.remote.cluster_processes import ClusterProcesses

_LOOK_INTERVAL_S = 0.1
"""Seconds between two checks for messages of the program: more threads, or a request to stop."""
_SEND_INTERVAL_S = 0.2
"""Least seconds between two messages with outcomes, since each wakes the program."""
_SLOWER = 3.0
"""A worker has hung when a batch takes longer than `_SLOWER` times its limit plus `_LATE_S` seconds."""
_COMPARED = 4
"""Factor on the limit of a game's position, since its move may be compared, which is limited by nodes, not by time."""
_LATE_S = 30.0
_BESIDE_MB = 200
"""Memory of a worker on a cluster besides its table, and of each of its processes, if any, in MiB."""
_WAIT_S = 0.2
"""Longest delay, in seconds, until a long search gets help and a request to stop is noticed."""


@dataclass(frozen=True)
class WorkerSettings:
    """Settings that all workers of a pool share; picklable."""

    threads: int = 1
    """Worker processes for one position; 1: the worker's own process searches."""
    hash_mb: int = 16
    options: SearchOptions = field(default_factory=SearchOptions)
    syzygy: str = ""
    """Folders of endgame tables, which are probed for the root; empty: none."""


class PositionWorker(Closing):
    """Searches tasks, one at a time; a context manager. A process of a pool calls it with each batch.

    program: the program that gets outcomes, and whose messages are read ten times a second during a search; name: the
    worker's name in outcomes. Raises PsearchError when there is not enough memory, or no process can be started.
    """

    def __init__(self, settings: WorkerSettings, program: Program | None = None, name: str = "") -> None:
        settings.options.read_network()  # fails early: on another machine the file may hold another network
        self.settings = settings
        self.name = name or str(os.getpid())
        self._program = program
        self.on_look: Callable[[], None] | None = None if program is None else partial(self._look, program)
        """Callback, ten times a second during a search."""
        self._outcomes: list[Outcome] = []
        """Outcomes that have not been sent."""
        self._sent_at = 0.0
        self._control = SearchControl()
        self._threads = settings.threads
        self._is_searching = False
        self._root = Root(settings.syzygy, lambda problem: None)
        self._comparer = Comparer(settings.options)
        self._latest: tuple[chess.Board, Answer] | None = None
        """Position of this list that was searched last, and its answer."""
        kernels = settings.options.kernels
        size = Size(settings.threads, settings.hash_mb, inline=settings.threads == 1, kernels=kernels)
        self._engine = Searcher(Notices(LOG.warning)).start(size)

    def close(self) -> None:
        """Free the memory, and end the processes, if any."""
        self._engine.close()
        self._comparer.close()
        self._root.close()

    def __call__(self, batch: Batch) -> list[Outcome]:
        """Search a batch, send outcomes from time to time, and return those that have not been sent."""
        for outcome in self.work(batch):
            self._outcomes.append(outcome)
            if self._program is not None and time.monotonic() - self._sent_at >= _SEND_INTERVAL_S:
                self._program.tell(self._taken())
        return self._taken()

    def beside(self, threads: int) -> None:
        """Use this many threads, which are processes, for the present search, if any, and for all later ones. To be
        called from `on_look`, or between searches."""
        if threads > self._threads:
            self._threads = threads
            if self._is_searching:
                self._control.allow(threads)
            else:
                self._engine.supervisor.allow(threads)

    def work(self, batch: Batch) -> Iterator[Outcome]:
        """Search a batch and yield its outcomes one by one; see `search`."""
        for part in batch:
            if part.begins:
                self.forget()
            for number, task in part.tasks:
                yield self.search(number, task)

    def forget(self) -> None:
        """Forget everything, as before another game or an unrelated position."""
        self._engine.supervisor.forget()
        self._latest = None

    def search(self, number: int, task: Task) -> Outcome:
        """Search a position. An error of the position is its outcome. Raises WorkerDied when processes are lost
        repeatedly before there is a result."""
        try:
            return Outcome(number, task.id, self._answer(task), None, self.name)
        except WorkerDied:
            raise
        except (PsearchError, ValueError) as error:
            return Outcome(number, task.id, None, str(error), self.name)

    def _look(self, program: Program) -> None:
        program.look()
        if self._outcomes:
            program.tell(self._taken())

    def _taken(self) -> list[Outcome]:
        outcomes, self._outcomes = self._outcomes, []
        self._sent_at = time.monotonic()
        return outcomes

    def _answer(self, task: Task) -> Answer:
        board = task.board()
        only = None if task.root_moves is None else [board.parse_uci(move) for move in task.root_moves]
        only = checked_moves(board, only)
        infos: list[Info] = []

        def take(info: Info) -> None:
            if not info.is_live:
                infos.append(info)
            elif self.on_look is not None:
                self.on_look()

        request = SearchRequest(
            board,
            task.limits,
            self.settings.options,
            only,
            task.multipv,
            on_info=take,
            control=self._control,
            live_from_s=_LOOK_INTERVAL_S,
            live_interval_s=_LOOK_INTERVAL_S if self.on_look is not None else math.inf,
        )
        self._is_searching = True
        asked = self._root.prepared(request)
        try:
            result = asked.finished(self._engine.supervisor.search(asked.request))
        finally:
            self._is_searching = False
        answer = answer_of(result, infos)
        latest, self._latest = self._latest, (board, answer)
        if not task.line or board.legal_moves.count() <= 1:
            return answer
        walk = board.copy(stack=False)
        line = [walk.push_uci(word) for word in task.line]
        is_suspect = self._is_suspect(board, line[0], answer, latest)
        answer = replace(answer, compared=self._comparer.compare(board, line, task.limits, self.on_look, is_suspect))
        self._latest = (board, answer)  # what the comparison has found shows mistakes of the move before
        return answer

    def _is_suspect(
        self, board: chess.Board, played: chess.Move, answer: Answer, latest: tuple[chess.Board, Answer] | None
    ) -> bool:
        """Tell whether a move may be a mistake, by the scores of this position and of the next one. It also may be if
        the next one was not searched just before this one: its answer came from a journal or from a lost worker."""
        if answer.best is None or answer.move(board) == played:
            return False
        after = board.copy(stack=False)
        after.push(played)
        reached = None
        if any(after.legal_moves):
            if latest is None or latest[0] != after:
                return True
            reached = latest[1].estimate[0]
        scores = scores_around(after, answer.estimate[0], reached)
        return scores.seeming_loss(board) >= LEAST_SEEMING_LOSS


def answer_of(result: Result, infos: Iterable[Info]) -> Answer:
    """Return the answer for a result and the reports before it."""
    info, best = result.info, result.bestmove
    reports = [report for report in infos if report.multipv == 1]
    exact = next((report for report in reversed(reports) if report.bound == "exact"), None)
    preferred = [(report.pv[0], report) for report in reports if report.depth > 0 and report.pv]
    if best is not None:
        preferred.append((best, info))
    choices: list[Choice] = []
    for move, since in preferred:
        before = choices[-1] if choices and choices[-1].move == move.uci() else None
        mate = since.score.relative.mate()
        if since.bound != "exact":  # what was known of the move still holds
            mate = None if before is None else before.mate
        if before is None or before.mate != mate:
            choices.append(Choice(move.uci(), round(since.time_s, 4), since.depth, since.nodes, mate))
    return Answer(
        best=None if best is None else best.uci(),
        lines=[
            Line(line.score.relative, line.bound, line.depth, line.seldepth, uci_line(line.pv))
            for line in result.lines or [info]
        ],
        nodes=info.nodes,
        time_s=round(info.time_s, 4),
        hashfull=info.hashfull,
        tbhits=info.tbhits,
        choices=choices,
        exact=exact.score.relative if exact and info.bound != "exact" and best in exact.pv[:1] else None,
        notes=tuple(result.notes),
        version=__version__,
        threads=len(info.workers) or 1,
    )


@dataclass(eq=False)
class PositionPool(Closing):
    """Worker processes that search batches, and that may be lost and replaced. A context manager, for one thread.
    threads: threads of each worker; cluster: the processes, if they are on a cluster."""

    processes: BackEnd
    threads: int
    cluster: ClusterProcesses | None = None
    lost: int = 0
    """Number of workers that were lost."""
    _batches: int = 0

    def send(self, worker: int, batch: Batch) -> None:
        """Queue a batch for a worker. Never waits long; `wait` reports a worker that has just been lost."""
        self.processes.give(worker, self._batches, batch, None if self.cluster is None else limit_s(batch))
        self._batches += 1

    def assist(self, worker: int, threads: int) -> None:
        """Let a worker use this many threads until the end of its search, since other workers are idle. Has no effect
        on a cluster, where a worker has only the cores that Ray has given it."""
        if isinstance(self.processes, TaskProcesses):
            self.processes.ask(worker, threads)

    def wait(self, timeout_s: float, awaited: int | None = None) -> Sequence[Event]:
        """Wait for events and return them. The wait ends at the first event, after `timeout_s`, or soon after the
        descriptor `awaited` becomes readable. Raises WorkerDied when no more workers can be started, PsearchError when
        the cluster is lost."""
        events: list[Event] = []
        for message in self.processes.messages(timeout_s, awaited):
            match message:
                case ProcessJoined() | ProcessLost():
                    self.lost += isinstance(message, ProcessLost)
                    events.append(message)
                case Told(worker, _, answer) | Answered(worker, _, answer):
                    outcomes = pickle.loads(answer)
                    if self.cluster is not None:
                        node = self.cluster.count(worker, len(outcomes))
                        outcomes = [replace(outcome, worker=node) for outcome in outcomes]
                    events.append(Done(worker, outcomes))
                case Raised(worker, _, error):  # an error of a position would be an outcome
                    self.processes.dismiss(worker, f"it raised {error_of(error)!r}")
        return events

    def work_done(self) -> str:
        """Return a summary of each machine's work, for people; empty without a cluster."""
        return "" if self.cluster is None else self.cluster.work_done()

    def close(self) -> None:
        """End all workers, in bounded time. May be called twice."""
        self.processes.close()


def limit_s(batch: Batch) -> float | None:
    """Return the seconds after which a batch has hung; None if a position has no limit of time."""
    seconds = 0.0
    for part in batch:
        for _, task in part.tasks:
            if task.limits.movetime_ms is None:
                return None
            seconds += task.limits.movetime_ms / 1000 * (_COMPARED if task.line else 1)
    return _SLOWER * seconds + _LATE_S


def make_pool(
    workers: int,
    settings: WorkerSettings,
    cluster: str | None = None,
    on_note: Callable[[str], None] = LOG.warning,
    worker: Callable[[WorkerSettings, Program], PositionWorker] = PositionWorker,
) -> PositionPool:
    """Start workers on this machine, or at most this many on a cluster. One that dies or stalls is replaced.

    cluster: its address, see `psearch.remote.cluster_processes`; on_note: called with one line for people when a worker
    or a node was lost; worker: class of the workers. Raises PsearchError when there is not enough memory, when no
    process can be started, and when the cluster cannot be reached.
    """
    if cluster is not None:
        from psearch.remote.cluster_processes import ClusterProcesses

        beside = _BESIDE_MB * (1 if settings.threads == 1 else settings.threads + 1)
        memory = (settings.hash_mb + beside) * MIB
        processes = ClusterProcesses(
            cluster, partial(PositionWorker, settings), settings.threads, memory, workers, on_note
        )
        return PositionPool(processes, settings.threads, processes)
    needed, available = workers * settings.hash_mb * MIB, available_memory()
    if needed > available:
        raise PsearchError(
            f"not enough memory: {workers} searches with a hash of {settings.hash_mb} MB each need {needed // MIB:,} "
            f"MB, {max(available, 0) // MIB:,} MB are available"
        )
    load_kernels(settings.options.kernels.group(SEARCH))  # compiled once, not by each worker
    make = partial(worker, settings)
    return PositionPool(TaskProcesses(make, workers, looks=True, what="analysis", on_note=on_note), settings.threads)


def rounds(
    pool: PositionPool,
    lists: Iterable[TaskList | Pause],
    *,
    assist: int = 0,
    is_stopped: Callable[[], bool] = lambda: False,
    awaited: int | None = None,
) -> Iterator[list[Outcome]]:
    """Yield the outcomes of all tasks in lists, several times a second, even when a list is empty. The end comes after
    the last outcome, or soon after `is_stopped` returns True.

    assist: see `TaskQueue`; awaited: a descriptor that becomes readable when `lists` can continue after `Pause.INPUT`.
    Between two rounds workers only finish what they have been given. The caller closes the pool. Raises the errors of
    the pool and those of reading `lists`.
    """
    queue = TaskQueue(lists, threads=pool.threads, assist=assist)
    while not is_stopped():
        for worker, batch in queue.batches():
            pool.send(worker, batch)
        for worker, threads in queue.assists():
            pool.assist(worker, threads)
        results = queue.results()
        yield results
        if queue.is_over:
            return
        timeout_s = 0.0 if results or queue.pause is Pause.ROUND else _WAIT_S
        for event in pool.wait(timeout_s, awaited if queue.pause is Pause.INPUT else None):
            queue.take(event)
    yield queue.results()  # outcomes that came before the request to stop was noticed
