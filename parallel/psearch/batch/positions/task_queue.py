"""Decides which worker does which task: reads lists of tasks as they are needed, makes batches of them, and gives what
a lost worker had to others.

Plain logic: it neither sends nor waits, and its clock is given to it. `position_pool.rounds` connects it to a pool.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from psearch.batch.positions.task import Batch, Outcome, Part, Pause, Task, TaskList
from psearch.processes.tasks import ProcessJoined, ProcessLost

MOST_TRIES = 3
"""A position whose worker was lost this often is bad, and not tried again."""
_BATCH_S = 1.0
"""Target duration of a batch, in seconds: between two of them a worker waits for a message, about a millisecond."""
_LEAST_BATCH_S = 0.05
"""Target near the end of the input: small batches let all workers finish together."""
_MOST_TASKS = 256
"""Most tasks in a batch."""
_GROWTH = 4
"""How many times larger than the one before a batch may be: the first times may mislead."""
_NEWEST_SHARE = 0.3
"""Weight of the latest time of a task among those before it."""
_MOST_AHEAD = 20_000
"""Tasks read ahead, however many workers there are (but two for each)."""
_ASSIST_AFTER_S = 0.25
"""A task that ends sooner is not worth more threads."""


@dataclass(frozen=True)
class Done:
    """Outcomes of a worker, in the order in which it was sent the tasks; one, or many at once."""

    worker: int
    outcomes: Sequence[Outcome]


Event = ProcessJoined | ProcessLost | Done


@dataclass(eq=False, slots=True)
class _Item:
    """A task that has been read."""

    number: int
    task: Task
    owner: _OpenList
    tries: int = 0
    """workers that were lost with it"""


@dataclass(eq=False, slots=True)
class _OpenList:
    """A list of tasks that has been begun to read, and is not finished."""

    number: int
    tasks: Iterator[Task] | None
    """those that are not read; None: read to its end"""
    waiting: deque[_Item] = field(default_factory=deque)
    """tasks that were read, and are at no worker"""
    is_known: bool = False
    """whether the worker that is at it has its past in the table"""

    @property
    def next_is_suspect(self) -> bool:
        """Whether a worker was lost with the next task."""
        return bool(self.waiting) and self.waiting[0].tries > 0


@dataclass(eq=False, slots=True)
class _Worker:
    """A worker, seen from the queue."""

    number: int
    name: str
    threads: int
    """how many it has been allowed"""
    rate_s: float | None
    """seconds a task; None: nothing is known"""
    size: int
    """how many tasks the last batch had"""
    tasks: _OpenList | None = None
    """the list of which it has some tasks and will get more"""
    batch: dict[int, _Item] = field(default_factory=dict)
    """tasks that it was sent and has not answered, by number"""
    marked_at: float = 0.0
    """when it began its present task, or has last answered"""


class TaskQueue:
    """Gives every task of `lists` to some worker until it has one outcome, whatever happens to workers.

    Behind a `Pause` in `lists` it reads on at the next call of `batches`. threads: of each worker; assist: threads that
    may search in all where fewer positions are left than workers, 0: none gets more threads; clock: seconds. What the
    iterables of `lists` raise goes through `batches`. After each event of the pool, and at the beginning: `take`,
    `batches`, `assists`, `results`.
    """

    def __init__(
        self,
        lists: Iterable[TaskList | Pause],
        *,
        threads: int = 1,
        assist: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._source: Iterator[TaskList | Pause] | None = iter(lists)
        self.pause: Pause | None = None
        """why `batches` has not read as much as it would have liked, if so"""
        self._threads = threads
        self._assist = assist
        self._clock = clock
        self._workers: dict[int, _Worker] = {}
        self._free: deque[_OpenList] = deque()
        """lists at no worker"""
        self._suspects: deque[_OpenList] = deque()
        """those of them with whose next task a worker was lost: it goes alone"""
        self._items: dict[int, _Item] = {}
        """tasks that are not finished, by number"""
        self._results: list[Outcome] = []
        self._lists_read = 0
        self._tasks_read = 0
        self._rate_s: float | None = None
        """seconds a task, at any worker"""

    @property
    def is_over(self) -> bool:
        """Whether every task has its outcome, and all have been given out by `results`."""
        # an open list may have tasks that are not read
        is_open = self._free or self._suspects or any(worker.tasks for worker in self._workers.values())
        return self._source is None and not (self._items or self._results or is_open)

    def results(self) -> list[Outcome]:
        """Return outcomes that are new; each task has one, once."""
        results, self._results = self._results, []
        return results

    def batches(self) -> list[tuple[int, Batch]]:
        """Return batches to be sent, with their workers."""
        self.pause = None
        idle = (worker for worker in self._workers.values() if not worker.batch)
        found = [(worker.number, batch) for worker in idle if (batch := self._batch(worker)) is not None]
        if not self._workers:
            self._fill(1)  # that there is nothing to do is seen without workers, too
        return found

    def assists(self) -> list[tuple[int, int]]:
        """Return workers whose search is worth more threads now, and how many each: others have nothing to do, and will
        have nothing."""
        if not self._assist or self._source is not None or self._free or self._suspects:
            return []
        busy = [worker for worker in self._workers.values() if worker.batch]
        now = self._clock()
        wanted = []
        for place, worker in enumerate(busy):
            share = self._assist // len(busy) + (place < self._assist % len(busy))
            if share > worker.threads and now - worker.marked_at >= _ASSIST_AFTER_S:
                worker.threads = share
                wanted.append((worker.number, share))
        return wanted

    def take(self, event: Event) -> None:
        """Take in what has happened to a worker."""
        match event:
            case ProcessJoined(number, _, name):
                size = 1 if self._rate_s is None else max(1, int(_BATCH_S / self._rate_s))
                self._workers[number] = _Worker(number, name, self._threads, self._rate_s, size)
            case Done(number, outcomes):
                worker = self._workers.get(number)
                for outcome in outcomes:
                    if worker is not None:
                        worker.batch.pop(outcome.number, None)
                    self._finish(outcome)
                if worker is not None:
                    self._measure(worker, len(outcomes))
                    self._leave_list(worker)
            case ProcessLost(number, reason):
                if number in self._workers:
                    self._take_back(self._workers.pop(number), reason)

    def _measure(self, worker: _Worker, count: int) -> None:
        """Note how long a worker has taken for this number of tasks."""
        if count:
            now, known = self._clock(), worker.rate_s
            latest = (now - worker.marked_at) / count
            worker.rate_s = latest if known is None else (1 - _NEWEST_SHARE) * known + _NEWEST_SHARE * latest
            worker.marked_at, self._rate_s = now, worker.rate_s

    def _take_back(self, worker: _Worker, reason: str) -> None:
        """Put the lists of a lost worker before all others, with the tasks that it has not answered."""
        lists = {} if worker.tasks is None else {worker.tasks.number: worker.tasks}
        back = [item for item in worker.batch.values() if item.number in self._items]
        for item in reversed(back):  # so that they are in their order again
            item.tries += 1
            item.owner.waiting.appendleft(item)
            lists[item.owner.number] = item.owner
        for item in back:
            if item.tries >= MOST_TRIES:
                text = f"its process was lost {item.tries} times, the last time because {reason}"
                self._finish(Outcome(item.number, item.task.id, None, text, worker.name))
        for _, tasks in sorted(lists.items(), reverse=True):
            tasks.is_known = False
            if self._has_more(tasks):
                (self._suspects if tasks.next_is_suspect else self._free).appendleft(tasks)

    def _finish(self, outcome: Outcome) -> None:
        """Keep an outcome, unless another worker has answered the task while this one was taken for lost."""
        if self._items.pop(outcome.number, None) is not None:
            self._results.append(outcome)

    # -- batches -----------------------------------------------------------------------------------------------------

    def _batch(self, worker: _Worker) -> Batch | None:
        """Return the next batch for a worker that has none; None: there is nothing."""
        size = self._size(worker)
        parts: list[Part] = []
        while len(worker.batch) < size:
            tasks = worker.tasks or self._next_list(alone=not worker.batch)
            if tasks is None:
                break
            if not self._has_more(tasks):
                worker.tasks = None
                continue
            is_suspect = tasks.next_is_suspect
            if is_suspect and worker.batch:
                if tasks is not worker.tasks:
                    self._suspects.append(tasks)
                break
            taken = [tasks.waiting.popleft()]
            most = 1 if is_suspect else size - len(worker.batch)
            while len(taken) < most and self._has_more(tasks) and not tasks.next_is_suspect:
                taken.append(tasks.waiting.popleft())
            parts.append(Part(tasks.number, not tasks.is_known, [(item.number, item.task) for item in taken]))
            tasks.is_known = True
            worker.tasks = tasks
            worker.batch.update((item.number, item) for item in taken)
            self._leave_list(worker)
            if is_suspect:
                break
        if not parts:
            return None
        worker.marked_at, worker.size = self._clock(), len(worker.batch)
        return Batch(parts)

    def _size(self, worker: _Worker) -> int:
        """Return how many tasks the next batch of a worker may have."""
        if worker.rate_s is None:
            return 1
        rate_s = max(worker.rate_s, 1e-6)
        size = max(1, min(int(_BATCH_S / rate_s), _GROWTH * worker.size, _MOST_TASKS))
        workers = len(self._workers)
        self._fill(min(_MOST_AHEAD, 2 * workers * size))
        fair = math.ceil(len(self._free) / (2 * workers))
        return max(1, min(size, max(fair, int(_LEAST_BATCH_S / rate_s))))

    def _next_list(self, alone: bool) -> _OpenList | None:
        """Return a list that no worker is at. alone: whether nothing else would be with it."""
        if alone and self._suspects:
            return self._suspects.popleft()
        self._fill(1)
        return self._free.popleft() if self._free else None

    def _leave_list(self, worker: _Worker) -> None:
        """Take a list that has no more tasks away from a worker."""
        if worker.tasks is not None and not self._has_more(worker.tasks):
            worker.tasks = None

    # -- reading -----------------------------------------------------------------------------------------------------

    def _fill(self, lists: int) -> None:
        """Read on until this many lists are free, or to a pause, or to the end."""
        while self._source is not None and len(self._free) < lists and self.pause is None:
            tasks = next(self._source, None)
            if tasks is None:
                self._source = None
            elif isinstance(tasks, Pause):
                self.pause = tasks
            else:
                opened = _OpenList(self._lists_read, iter(tasks.tasks))
                self._lists_read += 1
                if self._has_more(opened):
                    self._free.append(opened)

    def _has_more(self, tasks: _OpenList) -> bool:
        """Return whether a list has a task for a worker; the first of them is waiting then."""
        waiting = tasks.waiting
        while waiting and waiting[0].number not in self._items:
            waiting.popleft()
        if not waiting and tasks.tasks is not None:
            task = next(tasks.tasks, None)
            if task is None:
                tasks.tasks = None
            else:
                item = _Item(self._tasks_read, task, tasks)
                self._tasks_read += 1
                self._items[item.number] = item
                waiting.append(item)
        return bool(waiting)
