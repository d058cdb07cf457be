"""Who does the work of a farm: hands that are processes, of this machine or on the nodes of a cluster
(docs/guides/cluster.md)."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from psearch.api.api_log import LOG
from psearch.arena.blocks import MIB
from psearch.arena.control_groups import available_memory
from psearch.batch.positions.hand import Hand, HandSettings
from psearch.batch.positions.hand_process import HandProcess
from psearch.batch.positions.jobs import Batch, Outcome
from psearch.processes.tasks.task_messages import Answered, BackEnd, ProcessJoined, ProcessLost, Raised, Told, error_of
from psearch.processes.tasks.task_processes import TaskProcesses
from psearch.results import PsearchError
from psearch.scheduler.scheduler_entries import SEARCH, load_kernels

if TYPE_CHECKING:
    from psearch.remote.cluster_processes import ClusterProcesses

MOST_IN_FLIGHT = 2
"""batches at one hand: the one it is at, and the next, so that it never waits for the way"""
_SLOWER = 3.0
"""So many times its time a batch may take on a machine that is busy,"""
_COMPARED = 4
"""and so many times that where a move of a game may have to be compared, by nodes that make another time there,"""
_LATE_S = 30.0
"""and so many seconds more; then its hand has hung."""
_BESIDE_MB = 200
"""MiB that a hand of a cluster needs beside its table, and each of its processes if it has some"""


@dataclass(frozen=True)
class Done:
    """Outcomes of a hand, in the order in which it was sent the tasks; one, or many at once."""

    hand: int
    outcomes: Sequence[Outcome]


Event = ProcessJoined | ProcessLost | Done


class Crew:
    """Hands that come and go: processes, which do batches. A context manager, and for one thread.

    threads: of each hand; cluster: the processes, where they are on one.
    """

    def __init__(self, processes: BackEnd, threads: int, cluster: ClusterProcesses | None = None) -> None:
        self.processes = processes
        self._cluster = cluster
        self.threads = threads
        self._batches = 0
        self.lost = 0
        """hands, so far"""

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def send(self, hand: int, batch: Batch) -> None:
        """Give a hand a batch behind the one it may be at. Never waits long; a hand that is just lost is told of by
        `wait`."""
        self.processes.give(hand, self._batches, batch, None if self._cluster is None else limit_s(batch))
        self._batches += 1

    def assist(self, hand: int, threads: int) -> None:
        """Let so many threads search what this hand is at, from now to the end of it, since others have nothing to do.
        On a cluster nothing is done: a hand has the cores that Ray has given it, and no others."""
        if isinstance(self.processes, TaskProcesses):
            self.processes.ask(hand, threads)

    def wait(self, timeout_s: float, awaited: int | None = None) -> Sequence[Event]:
        """Return what has happened since; waits for the first event, but no longer, and not much longer than until
        `awaited`, a descriptor, can be read. Raises WorkerDied when no hands can be had any more, PsearchError when the
        machines are gone."""
        events: list[Event] = []
        for message in self.processes.messages(timeout_s, awaited):
            match message:
                case ProcessJoined():
                    events.append(message)
                case ProcessLost():
                    self.lost += 1
                    events.append(message)
                case Told(hand, _, answer) | Answered(hand, _, answer):
                    events.append(self._done(hand, pickle.loads(answer)))
                case Raised(hand, _, error):  # not of a position: those are outcomes
                    self.processes.dismiss(hand, f"it raised {error_of(error)!r}")
        return events

    def _done(self, hand: int, outcomes: list[Outcome]) -> Done:
        """On a cluster it is the node that has searched."""
        if self._cluster is not None:
            name = self._cluster.count(hand, len(outcomes))
            outcomes = [replace(outcome, hand=name) for outcome in outcomes]
        return Done(hand, outcomes)

    def work_done(self) -> str:
        """Return what each machine has done, for people; empty where it is this machine."""
        return "" if self._cluster is None else self._cluster.work_done()

    def close(self) -> None:
        """End all hands, in bounded time. May be called twice."""
        self.processes.close()


def limit_s(batch: Batch) -> float | None:
    """Return after how long a batch has hung; None where only its times tell how long it takes."""
    seconds = 0.0
    for piece in batch.pieces:
        for _, task in piece.tasks:
            if task.limits.movetime_ms is None:
                return None
            seconds += task.limits.movetime_ms / 1000 * (_COMPARED if task.line else 1)
    return _SLOWER * seconds + _LATE_S


def make_crew(
    hands: int,
    settings: HandSettings,
    cluster: str | None = None,
    on_note: Callable[[str], None] = LOG.warning,
    hand: Callable[[HandSettings], Hand] = Hand,
) -> Crew:
    """Start so many hands on this machine, or at most so many on a cluster. One that dies or stalls is replaced.

    cluster: see `psearch.remote.address`, hands there have the cores that Ray gives them;
    on_note: called with a line for people when a hand or a node was lost; hand: what searches. Raises PsearchError when
    there is not enough memory, and when no process or no cluster can be had.
    """
    if cluster is not None:
        from psearch.remote.cluster_processes import ClusterProcesses

        beside = _BESIDE_MB * (1 if settings.threads == 1 else settings.threads + 1)
        memory = (settings.hash_mb + beside) * MIB
        processes = ClusterProcesses(cluster, partial(_begin, settings), settings.threads, memory, hands, on_note)
        return Crew(processes, settings.threads, processes)
    needed, available = hands * settings.hash_mb * MIB, available_memory()
    if needed > available:
        raise PsearchError(
            f"not enough memory: {hands} searches with a hash of {settings.hash_mb} MB each need {needed // MIB:,} MB, "
            f"{max(available, 0) // MIB:,} MB are available"
        )
    load_kernels(settings.options.kernels.group(SEARCH))  # compiled once, not by each hand
    make = partial(HandProcess, settings, hand)
    return Crew(TaskProcesses(make, hands, looks=True, what="analysis", on_note=on_note), settings.threads)


def _begin(settings: HandSettings) -> Callable[[Batch], list[Outcome]]:
    """In each hand of a cluster: what answers batches there."""
    hand = Hand(settings)
    return lambda batch: list(hand.work(batch))
