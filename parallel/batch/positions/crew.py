"""What a farm needs of those who do the work: hands that are processes, of this machine or of many."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from psearch.batch.positions.jobs import Batch, Outcome
from psearch.processes.task_messages import Answered, ProcessJoined, ProcessLost, Raised, Told, error_of

if TYPE_CHECKING:
    from psearch.processes.task_processes import TaskProcesses
    from psearch.remote.ray.link import Link

MOST_IN_FLIGHT = 2
"""batches at one hand: the one it is at, and the next, so that it never waits for the way"""


@dataclass(frozen=True)
class Joined:
    """A hand is there, and warm. Its number is never given to another."""

    hand: int
    name: str
    threads: int = 1
    """that search one position"""


@dataclass(frozen=True)
class Lost:
    """A hand is gone, with all that it was sent and has not answered; the reason is one line."""

    hand: int
    reason: str


@dataclass(frozen=True)
class Done:
    """Outcomes of a hand, in the order in which it was sent the tasks; one, or many at once."""

    hand: int
    outcomes: Sequence[Outcome]


Event = Joined | Lost | Done


class Crew:
    """Hands that come and go; a context manager. For one thread. threads: of each hand."""

    def __init__(self, processes: TaskProcesses | Link, threads: int) -> None:
        self.processes = processes
        self._threads = threads
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
        self.processes.give(hand, self._batches, batch, self.limit_s(batch))
        self._batches += 1

    @staticmethod
    def limit_s(batch: Batch) -> float | None:
        """After how long a batch has hung; None where only its times tell how long it takes."""
        return None

    def assist(self, hand: int, threads: int) -> None:
        """Let so many threads search what this hand is at, from now to the end of it, since others have nothing to do.
        Those for whom it is too much do nothing."""

    def wait(self, timeout_s: float, awaited: int | None = None) -> Sequence[Event]:
        """What has happened since; waits for the first event, but no longer, and not much longer than until `awaited`,
        a descriptor, can be read. Raises WorkerDied when no hands can be had any more, PsearchError when the machines
        are gone."""
        raise NotImplementedError

    def events(self, messages: Iterable[object]) -> list[Event]:
        """What the messages of processes say of hands."""
        events: list[Event] = []
        for message in messages:
            match message:
                case ProcessJoined(hand, _, name):
                    events.append(Joined(hand, name, self._threads))
                case ProcessLost(hand, reason):
                    self.lost += 1
                    events.append(Lost(hand, reason))
                case Told(hand, _, answer) | Answered(hand, _, answer):
                    events.append(Done(hand, pickle.loads(answer)))
                case Raised(hand, _, error):  # not of a position: those are outcomes
                    self.processes.dismiss(hand, f"it raised {error_of(error)!r}")
        return events

    def standing_line(self) -> str:
        """Who is at work, for people; empty where it is this machine."""
        return ""

    def work_done(self) -> str:
        """What each machine has done, for people; empty where it is this machine."""
        return ""

    def close(self) -> None:
        """End all hands, in bounded time. May be called twice."""
        self.processes.close()
