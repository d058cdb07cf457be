"""Decides which worker gets which task: reads lists of tasks on demand, divides them into batches, and gives the tasks
of a lost worker to others.

It is plain logic: it neither sends nor waits, and its clock is an argument. `position_pool.rounds` connects it to a
pool.
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
"""Number of lost workers after which a position gets an error instead of another try."""
_BATCH_S = 1.0
"""Target duration of a batch, in seconds: between two of them a worker waits for a message, about a millisecond."""
_LEAST_BATCH_S = 0.05
"""Target near the end of the input: small batches let all workers finish together."""
_MOST_TASKS = 256
"""Most tasks in a batch."""
_GROWTH = 4
"""Largest growth of a batch relative to the one before, since the first measured times may mislead."""
_NEWEST_SHARE = 0.3
"""Weight of the latest time per task in its moving average."""
_MOST_AHEAD = 20_000
"""Most lists read ahead, whatever the number of workers."""
_ASSIST_AFTER_S = 0.25
"""Seconds that a search must have run before it gets more threads; short searches are not worth them."""


@dataclass(frozen=True)
class Done:
    """One or more outcomes of a worker, in the order in which it got the tasks."""

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
    """Number of workers that were lost with the task."""


@dataclass(eq=False, slots=True)
class _OpenList:
    """A list of tasks that has been read in part, and is not finished."""

    number: int
    tasks: Iterator[Task] | None
    """Tasks that have not been read; None: all have."""
    waiting: deque[_Item] = field(default_factory=deque)
    """Tasks that have been read and that no worker has."""
    is_known: bool = False
    """True if the worker of this list has the earlier tasks in its table."""

    @property
    def next_is_suspect(self) -> bool:
        """True if a worker was lost with the next task."""
        return bool(self.waiting) and self.waiting[0].tries > 0


@dataclass(eq=False, slots=True)
class _Worker:
    """The queue's view of a worker."""

    number: int
    name: str
    threads: int
    """Number of threads that it may use."""
    rate_s: float | None
    """Seconds per task; None: not measured yet."""
    size: int
    """Number of tasks in its last batch."""
    tasks: _OpenList | None = None
    """List whose tasks it works on, if more of them follow."""
    batch: dict[int, _Item] = field(default_factory=dict)
    """Tasks that it has got and not answered, by number."""
    marked_at: float = 0.0
    """Time when its batch was made, or of its last answer."""


class TaskQueue:
    """Gives every task of `lists` to workers until it has exactly one outcome, whatever happens to the workers.

    threads: threads of each worker; assist: total number of threads that may search when fewer positions than workers
    are left; 0: no worker gets more threads; clock: seconds. After a `Pause` in `lists` the next call of `batches`
    reads on. `batches` raises the errors of reading `lists`. To be called after each event of the pool, and at the
    beginning: `take`, `batches`, `assists`, `results`.
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
        """Reason why `batches` stopped reading early, if it did."""
        self._threads = threads
        self._assist = assist
        self._clock = clock
        self._workers: dict[int, _Worker] = {}
        self._free: deque[_OpenList] = deque()
        """Lists that no worker has."""
        self._suspects: deque[_OpenList] = deque()
        """Lists with whose next task a worker was lost; that task gets a batch for itself."""
        self._items: dict[int, _Item] = {}
        """Unfinished tasks, by number."""
        self._results: list[Outcome] = []
        self._lists_read = 0
        self._tasks_read = 0
        self._rate_s: float | None = None
        """Last measured seconds per task, of any worker."""

    @property
    def is_over(self) -> bool:
        """True if every task has its outcome, and `results` has returned all of them."""
        # an open list may have tasks that have not been read
        is_open = self._free or self._suspects or any(worker.tasks for worker in self._workers.values())
        return self._source is None and not (self._items or self._results or is_open)

    def results(self) -> list[Outcome]:
        """Return the new outcomes; each task has exactly one."""
        results, self._results = self._results, []
        return results

    def batches(self) -> list[tuple[int, Batch]]:
        """Return the batches to send, with the numbers of their workers."""
        self.pause = None
        idle = (worker for worker in self._workers.values() if not worker.batch)
        found = [(worker.number, batch) for worker in idle if (batch := self._batch(worker)) is not None]
        if not self._workers:
            self._fill(1)  # so that an empty input ends even without workers
        return found

    def assists(self) -> list[tuple[int, int]]:
        """Return the workers whose search should get more threads, and how many, when no tasks remain for the
        others."""
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
        """Process an event of a worker."""
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
        """Update a worker's time per task after this number of outcomes."""
        if count:
            now, known = self._clock(), worker.rate_s
            latest = (now - worker.marked_at) / count
            worker.rate_s = latest if known is None else (1 - _NEWEST_SHARE) * known + _NEWEST_SHARE * latest
            worker.marked_at, self._rate_s = now, worker.rate_s

    def _take_back(self, worker: _Worker, reason: str) -> None:
        """Put the lists of a lost worker, with its unanswered tasks, before all others."""
        lists = {} if worker.tasks is None else {worker.tasks.number: worker.tasks}
        back = [item for item in worker.batch.values() if item.number in self._items]
        for item in reversed(back):  # restores their order
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
        """Keep an outcome, unless another worker has already answered the task because this one seemed lost."""
        if self._items.pop(outcome.number, None) is not None:
            self._results.append(outcome)

    def _batch(self, worker: _Worker) -> Batch | None:
        """Return the next batch for an idle worker; None: there are no tasks."""
        size = self._size(worker)
        parts: Batch = []
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
        return parts

    def _size(self, worker: _Worker) -> int:
        """Return the largest number of tasks for the next batch of a worker."""
        if worker.rate_s is None:
            return 1
        rate_s = max(worker.rate_s, 1e-6)
        size = max(1, min(int(_BATCH_S / rate_s), _GROWTH * worker.size, _MOST_TASKS))
        workers = len(self._workers)
        self._fill(min(_MOST_AHEAD, 2 * workers * size))
        fair = math.ceil(len(self._free) / (2 * workers))
        return max(1, min(size, max(fair, int(_LEAST_BATCH_S / rate_s))))

    def _next_list(self, alone: bool) -> _OpenList | None:
        """Return a list that no worker has. alone: the batch is still empty, so a suspect task may be its only one."""
        if alone and self._suspects:
            return self._suspects.popleft()
        self._fill(1)
        return self._free.popleft() if self._free else None

    def _leave_list(self, worker: _Worker) -> None:
        """Detach a list without further tasks from its worker."""
        if worker.tasks is not None and not self._has_more(worker.tasks):
            worker.tasks = None

    def _fill(self, lists: int) -> None:
        """Read lists until this many are free, or until a pause or the end."""
        while self._source is not None and len(self._free) < lists and self.pause is None:
            tasks = next(self._source, None)
            if tasks is None:
                self._source = None
            elif isinstance(tasks, Pause):
                self.pause = tasks
            else:
                opened = _OpenList(self._lists_read, iter(tasks))
                self._lists_read += 1
                if self._has_more(opened):
                    self._free.append(opened)

    def _has_more(self, tasks: _OpenList) -> bool:
        """Tell whether a list has a task for a worker, and put the first one into `waiting`."""
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
