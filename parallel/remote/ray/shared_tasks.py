"""Any list of tasks, shared out to a cluster: games of a match, jobs of a study."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable
from typing import Any, TypeVar

from psearch.processes.tasks.task_sharing import share_out_to
from psearch.remote.ray.link import Link
from psearch.remote.ray.sources import Sources
from psearch.remote.ray.standing import Standing

Task = TypeVar("Task")
Answer = TypeVar("Answer")

MOST_TRIES = 3
"""A task whose process was lost so often is not given again."""


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
    """Share tasks out as `psearch.processes.tasks.task_sharing.share_out` does, to the hands of a cluster.

    A task whose hand was lost is done again, three times in all; then WorkerDied is raised. Tasks are read as they are
    given away. It ends early when `stopped` says so, which is asked five times a second. The rest: see `Link`.
    """
    standing = Standing(on_note, time.monotonic())

    def follow(messages: list[Any]) -> None:
        for message in messages:
            standing.follow(message, time.monotonic())
        standing.check(time.monotonic())

    with Link(address, make, cores, memory, most, sources=sources) as link:
        yield from share_out_to(link, tasks, MOST_TRIES, on_messages=follow, is_stopped=stopped)
