"""Worker processes that search positions, on this machine or on a cluster (docs/guides/cluster.md), and the loop that
keeps them at work."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from psearch.api.api_log import LOG
from psearch.arena.blocks import MIB
from psearch.arena.control_groups import available_memory
from psearch.batch.positions.position_worker import PositionProcess, PositionWorker, WorkerSettings
from psearch.batch.positions.task import Batch, Outcome, Pause, TaskList
from psearch.batch.positions.task_queue import Done, Event, TaskQueue
from psearch.processes.task_processes import TaskProcesses
from psearch.processes.tasks import Answered, BackEnd, ProcessJoined, ProcessLost, Raised, Told, error_of
from psearch.results import PsearchError
from psearch.scheduler.scheduler_entries import SEARCH, load_kernels

if TYPE_CHECKING:
    from psearch.remote.cluster_processes import ClusterProcesses

_SLOWER = 3.0
"""A worker has hung when a batch takes longer than `_SLOWER` times its limit plus `_LATE_S` seconds."""
_COMPARED = 4
"""A position of a game may take so many times its limit: its move may be compared, by nodes, not by time."""
_LATE_S = 30.0
_BESIDE_MB = 200
"""MiB that a worker on a cluster needs beside its table, and each of its processes if it has some."""
_WAIT_S = 0.2
"""How soon a search that goes on is seen to be worth help, and a wish to stop is heard."""


class PositionPool:
    """Workers that come and go: processes, which do batches. A context manager, and for one thread.

    threads: of each worker; cluster: the processes, where they are on one.
    """

    def __init__(self, processes: BackEnd, threads: int, cluster: ClusterProcesses | None = None) -> None:
        self.processes = processes
        self._cluster = cluster
        self.threads = threads
        self._batches = 0
        self.lost = 0
        """how many workers were lost so far"""

    def __enter__(self) -> PositionPool:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def send(self, worker: int, batch: Batch) -> None:
        """Give a worker a batch behind the one it may be at. Never waits long; `wait` reports one that is just lost."""
        self.processes.give(worker, self._batches, batch, None if self._cluster is None else limit_s(batch))
        self._batches += 1

    def assist(self, worker: int, threads: int) -> None:
        """Let so many threads do this worker's search, from now to its end, since others have nothing to do. On a
        cluster nothing is done: a worker has the cores that Ray has given it, and no others."""
        if isinstance(self.processes, TaskProcesses):
            self.processes.ask(worker, threads)

    def wait(self, timeout_s: float, awaited: int | None = None) -> Sequence[Event]:
        """Return what has happened since; waits for the first event, but no longer, and not much longer than until
        `awaited`, a descriptor, can be read. Raises WorkerDied when no workers can be had any more, PsearchError when
        the machines are gone."""
        events: list[Event] = []
        for message in self.processes.messages(timeout_s, awaited):
            match message:
                case ProcessJoined():
                    events.append(message)
                case ProcessLost():
                    self.lost += 1
                    events.append(message)
                case Told(worker, _, answer) | Answered(worker, _, answer):
                    events.append(self._done(worker, pickle.loads(answer)))
                case Raised(worker, _, error):  # not of a position: those are outcomes
                    self.processes.dismiss(worker, f"it raised {error_of(error)!r}")
        return events

    def _done(self, worker: int, outcomes: list[Outcome]) -> Done:
        """Return the event; on a cluster the outcomes name the node."""
        if self._cluster is not None:
            name = self._cluster.count(worker, len(outcomes))
            outcomes = [replace(outcome, worker=name) for outcome in outcomes]
        return Done(worker, outcomes)

    def work_done(self) -> str:
        """Return what each machine has done, for people; empty where it is this machine."""
        return "" if self._cluster is None else self._cluster.work_done()

    def close(self) -> None:
        """End all workers, in bounded time. May be called twice."""
        self.processes.close()


def limit_s(batch: Batch) -> float | None:
    """Return after how long a batch has hung; None where only its times tell how long it takes."""
    seconds = 0.0
    for part in batch.parts:
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
    worker: Callable[[WorkerSettings], PositionWorker] = PositionWorker,
) -> PositionPool:
    """Start so many workers on this machine, or at most so many on a cluster. One that dies or stalls is replaced.

    cluster: see `psearch.remote.cluster_processes`, workers there have the cores that Ray gives them; on_note: called
    with a line for people when a worker or a node was lost; worker: what searches. Raises PsearchError when there is
    not enough memory, and when no process or no cluster can be had.
    """
    if cluster is not None:
        from psearch.remote.cluster_processes import ClusterProcesses

        beside = _BESIDE_MB * (1 if settings.threads == 1 else settings.threads + 1)
        memory = (settings.hash_mb + beside) * MIB
        processes = ClusterProcesses(cluster, partial(_begin, settings), settings.threads, memory, workers, on_note)
        return PositionPool(processes, settings.threads, processes)
    needed, available = workers * settings.hash_mb * MIB, available_memory()
    if needed > available:
        raise PsearchError(
            f"not enough memory: {workers} searches with a hash of {settings.hash_mb} MB each need {needed // MIB:,} "
            f"MB, {max(available, 0) // MIB:,} MB are available"
        )
    load_kernels(settings.options.kernels.group(SEARCH))  # compiled once, not by each worker
    make = partial(PositionProcess, settings, worker)
    return PositionPool(TaskProcesses(make, workers, looks=True, what="analysis", on_note=on_note), settings.threads)


def _begin(settings: WorkerSettings) -> Callable[[Batch], list[Outcome]]:
    """Return what answers batches, in each worker of a cluster."""
    worker = PositionWorker(settings)
    return lambda batch: list(worker.work(batch))


def rounds(
    pool: PositionPool,
    lists: Iterable[TaskList | Pause],
    *,
    assist: int = 0,
    is_stopped: Callable[[], bool] = lambda: False,
    awaited: int | None = None,
) -> Iterator[list[Outcome]]:
    """Yield the outcome of every task, once each; until there is none left, or `is_stopped`, which is asked now and
    then. Those that are there at a time come together, several times a second, even if there are none.

    assist: see `TaskQueue`; awaited: a descriptor that can be read when `lists` can go on behind `Pause.INPUT`. Between
    two rounds nothing is done but what workers have been given. The caller closes the pool. Raises what the pool
    raises, and what reading `lists` does.
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
    yield queue.results()  # which have come before the wish to stop was heard
