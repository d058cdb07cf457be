"""What a farm needs of those who do the work: the hands of this machine, or of many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from psearch.batch.positions.jobs import Batch, Outcome

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


class Crew(Protocol):
    """Hands that come and go. For one thread; a context manager, if it is one, closes at its end."""

    def send(self, hand: int, batch: Batch) -> None:
        """Give a hand a batch behind the one it may be at. Never waits long; a hand that is just lost is told of by
        `wait`."""

    def assist(self, hand: int, threads: int) -> None:
        """Let so many threads search what this hand is at, from now to the end of it, since others have nothing to do.
        Those for whom it is too much do nothing."""

    def wait(self, timeout_s: float, awaited: int | None = None) -> Sequence[Event]:
        """What has happened since; waits for the first event, but no longer, and not much longer than until `awaited`,
        a descriptor, can be read. Raises WorkerDied when no hands can be had any more, PsearchError when the machines
        are gone."""

    def standing_line(self) -> str:
        """Who is at work, for people; empty where it is this machine."""

    def work_done(self) -> str:
        """What each machine has done, for people; empty where it is this machine."""

    def close(self) -> None:
        """End all hands, in bounded time. May be called twice."""
