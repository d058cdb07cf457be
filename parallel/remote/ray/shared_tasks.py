"""Any list of tasks, shared out to a cluster: games of a match, jobs of a study."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from psearch.remote.ray.driver_messages import Answered, HandJoined, HandLost, Raised
from psearch.remote.ray.link import Link
from psearch.remote.ray.sources import Sources
from psearch.remote.ray.standing import Standing
from psearch.results import WorkerDied

Task = TypeVar("Task")
Answer = TypeVar("Answer")

MOST_TRIES = 3
"""A task whose process was lost so often is not given again."""
_WAIT_S = 0.5


@dataclass
class _Job:
    place: int
    task: Any
    tries: int = 0


def share_out_on(
    address: str,
    make: Callable[[], Callable[[Task], Answer]],
    tasks: Iterable[Task],
    most: int | None = None,
    cores: int = 1,
    memory: int = 0,
    on_note: Callable[[str], None] = lambda note: None,
    sources: Sources | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> Generator[tuple[int, Answer], None, None]:
    """Each task's place in the order of `tasks` and its answer, in the order in which they are done, by the hands of a
    cluster: as `psearch.processes.job_pool.share_out`, on several machines.

    A task whose hand was lost is done again, three times in all; then WorkerDied is raised. What a task raises is
    raised here. Each hand has one task at a time; tasks are read as they are given away. It ends early when `stopped`
    says so, which is asked twice a second. The rest: see `Link`.
    """
    with Link(address, make, cores, memory, most, sources=sources) as link:
        yield from _Sharing(link, tasks, on_note, stopped).answers()


class _Sharing:
    def __init__(
        self, link: Any, tasks: Iterable[Any], on_note: Callable[[str], None], stopped: Callable[[], bool]
    ) -> None:
        self._link = link
        self._stopped = stopped
        self._source: Iterator[_Job] = (_Job(place, task) for place, task in enumerate(tasks))
        self._again: list[_Job] = []
        self._at: dict[int, _Job] = {}
        """what each hand is doing"""
        self._free: set[int] = set()
        self._standing = Standing(on_note, time.monotonic())

    def answers(self) -> Generator[tuple[int, Any], None, None]:
        self._have_more()
        while (self._again or self._at or self._have_more()) and not self._stopped():
            for message in self._link.messages(_WAIT_S):
                self._standing.follow(message, time.monotonic())
                match message:
                    case HandJoined(hand):
                        self._free.add(hand)
                    case HandLost(hand, reason):
                        self._lose(hand, reason)
                    case Answered(hand, place, answer):
                        self._at.pop(hand)
                        self._free.add(hand)
                        self._give()  # before the caller does whatever it does
                        yield place, pickle.loads(answer)
                    case Raised(_, _, error):
                        raise pickle.loads(error)
            self._give()
            self._standing.check(time.monotonic())

    def _have_more(self) -> bool:
        """Whether there is a task that nobody has been given; if so one is ready in `_again`."""
        if not self._again:
            self._again.extend(job for job in (next(self._source, None),) if job is not None)
        return bool(self._again)

    def _give(self) -> None:
        while self._free and self._have_more():
            hand, job = self._free.pop(), self._again.pop()
            self._at[hand] = job
            self._link.give(hand, job.place, job.task)

    def _lose(self, hand: int, reason: str) -> None:
        self._free.discard(hand)
        job = self._at.pop(hand, None)
        if job is None:
            return
        job.tries += 1
        if job.tries == MOST_TRIES:
            raise WorkerDied(f"task {job.place + 1} was lost {MOST_TRIES} times with its process ({reason})")
        self._again.append(job)
