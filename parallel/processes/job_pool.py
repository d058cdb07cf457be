"""Tasks shared out to processes, none of which outlives this one.

Of concurrent.futures, because it notices when a process dies. `multiprocessing.Pool`, and with it that of multiprocess,
starts another one and waits for ever for the result; when the dead one held the lock of the task queue, as an idle one
does, its `terminate` does not return either.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from psearch.processes.starting.launcher import safe_start_method
from psearch.results import WorkerDied

Task = TypeVar("Task")
Answer = TypeVar("Answer")

_do: Callable[[Any], Any]
"""Does the tasks that come to this process; set where it begins."""


def share_out(
    make: Callable[[], Callable[[Task], Answer]], tasks: Sequence[Task], jobs: int
) -> Generator[tuple[int, Answer], None, None]:
    """Each task's place in the list and its answer, in the order in which they are done, by so many processes.

    `make` is called once in each process, and what it returns for each task there; all must be picklable. What a task
    raises is raised here; then, as after Ctrl-C here, the processes end at once. Raises WorkerDied when one of them is
    killed.
    """
    context = multiprocessing.get_context(safe_start_method())
    theirs, ours = context.Pipe(duplex=False)
    forked = context.get_start_method() == "fork"
    pool = ProcessPoolExecutor(min(jobs, len(tasks)), context, _begin, (make, theirs, ours if forked else None))
    try:
        places = {pool.submit(_perform, task): place for place, task in enumerate(tasks)}
        for future in as_completed(places):
            yield places[future], future.result()
    except BrokenProcessPool:
        raise WorkerDied("a process of the study ended; the study was stopped") from None
    except BaseException:
        ours.close()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
        ours.close()
        theirs.close()


def _begin(make: Callable[[], Callable[[Any], Any]], link: Connection, inherited: Connection | None) -> None:
    """In a new process. link: nothing is ever sent; its end means that this process is not wanted any more."""
    global _do
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all; the parent decides
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if inherited is not None:
        inherited.close()
    threading.Thread(target=_end_with, args=(link,), daemon=True).start()
    _do = make()


def _end_with(link: Connection) -> None:
    """Wait until the other end of the link is closed or its process has ended, and end."""
    link.poll(None)
    os._exit(1)


def _perform(task: Any) -> Any:
    return _do(task)
