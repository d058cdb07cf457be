"""Shares tasks out to processes, none of which outlives this one."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Sequence
from functools import partial
from itertools import islice
from typing import Any, TypeVar

from psearch.processes.tasks.task_main import unwatched
from psearch.processes.tasks.task_messages import Answered, BackEnd, ProcessJoined, ProcessLost, Raised, error_of
from psearch.processes.tasks.task_processes import TaskProcesses
from psearch.results import WorkerDied

Task = TypeVar("Task")
Answer = TypeVar("Answer")

_WAIT_S = 0.2
"""How soon a wish to stop is heard."""


def share_out(
    make: Callable[[], Callable[[Task], Answer]], tasks: Sequence[Task], jobs: int
) -> Generator[tuple[int, Answer], None, None]:
    """Yield each task's place in the list and its answer, in the order in which they are done, by so many processes of
    this machine.

    `make` is called once in each process, and what it returns for each task there; all must be picklable, and nothing
    of `__main__`. What a task raises is raised here; then, as after Ctrl-C here, the processes end at once. Raises
    WorkerDied when one of them is killed.
    """
    with TaskProcesses(partial(unwatched, make), min(jobs, len(tasks))) as processes:
        yield from share_out_to(processes, tasks)


def share_out_to(
    processes: BackEnd,
    tasks: Iterable[Task],
    most_tries: int = 1,
    limit_s: float | None = None,
    on_messages: Callable[[list[Any]], None] = lambda messages: None,
    is_stopped: Callable[[], bool] = lambda: False,
) -> Generator[tuple[int, Any], None, None]:
    """Yield the same, by processes that there are. Each has one task at a time; tasks are read as they are given away.

    A task whose process was lost is given to another, until that has happened `most_tries` times; with one try the loss
    of any process is the end: WorkerDied. limit_s: for a task, then its process is lost; on_messages: called with all
    that was heard, five times a second at least; is_stopped: whether to end early, asked as often.
    """
    source = enumerate(tasks)
    waiting = list(islice(source, 1))
    """to be given next; empty: there are no more"""
    at: dict[int, tuple[int, Any]] = {}
    """what each process is doing"""
    free: set[int] = set()
    losses: Counter[int] = Counter()
    """of processes with a task"""

    def give() -> None:
        while free and waiting:
            process, (place, task) = free.pop(), waiting.pop()
            waiting.extend(islice(source, 0 if waiting else 1))
            at[process] = place, task
            processes.give(process, place, task, limit_s)

    while (waiting or at) and not is_stopped():
        messages = processes.messages(_WAIT_S)
        on_messages(messages)
        for message in messages:
            match message:
                case ProcessJoined(process):
                    free.add(process)
                case ProcessLost() if most_tries == 1:
                    raise WorkerDied("a process of the study ended; the study was stopped")
                case ProcessLost(process, reason):
                    free.discard(process)
                    if process in at:
                        waiting.append(at.pop(process))
                        place = waiting[-1][0]
                        losses[place] += 1
                        if losses[place] == most_tries:
                            what = f"task {place + 1} was lost {most_tries} times with its process"
                            raise WorkerDied(f"{what} ({reason})")
                case Answered(process, place, answer):
                    del at[process]
                    free.add(process)
                    give()  # before the caller does whatever it does
                    yield place, pickle.loads(answer)
                case Raised(_, _, error):
                    raise error_of(error)
        give()
