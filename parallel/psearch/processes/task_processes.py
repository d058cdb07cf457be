"""Processes of this machine that do tasks, and a list of tasks distributed to them.

`psearch.remote.cluster_processes.ClusterProcesses` does the same with processes on the nodes of a cluster.
"""

from __future__ import annotations

import pickle
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any, TypeVar

from psearch.arena.system_calls import Owner
from psearch.processes.child import ChildProcess, Children, end, reap
from psearch.processes.patience import DEATH_S, END_S, LOST_STARTS, TASK, TASK_IN_SILENCE, TASK_START
from psearch.processes.starting import launch_process
from psearch.processes.tasks import (
    TARGET,
    Alive,
    Answered,
    Ask,
    BackEnd,
    Give,
    ProcessJoined,
    ProcessLost,
    Program,
    Raised,
    error_of,
    unwatched,
)
from psearch.results import PsearchError, WorkerDied

Task = TypeVar("Task")
Answer = TypeVar("Answer")

_WAIT_S = 0.2
"""Longest seconds between two checks of whether to stop."""


@dataclass(eq=False)
class _TaskProcess:
    place: int
    child: ChildProcess
    is_ready: bool = False
    limits: deque[float | None] = field(default_factory=deque)
    """Time limit in seconds of each of its tasks, None if there is none."""
    began_at: float = 0.0
    """Moment at which the first of its tasks began."""


class TaskProcesses(BackEnd):
    """A fixed number of processes that do tasks; see `BackEnd`.

    make: picklable function, see `tasks`; looks: whether tasks call `Program.look`, so that a busy process without a
    heartbeat counts as lost; what: name of the group in messages; on_note: called with a line for people when a process
    is replaced. Raises PsearchError when no process can be started.
    """

    def __init__(
        self,
        make: Callable[[Program], Callable[[Any], Any]],
        count: int,
        *,
        looks: bool = False,
        what: str = "group of processes",
        on_note: Callable[[str], None] = lambda note: None,
    ) -> None:
        self._make = pickle.dumps(make)
        self._places = set(range(count))
        """Places without a process."""
        self._looks = looks
        self._on_note = on_note
        self._started = 0
        self._processes: dict[int, _TaskProcess] = {}
        self._ending: list[ChildProcess] = []
        """Killed processes that may not have ended yet."""
        self._messages: list[Any] = []
        """Messages for the next call of `messages`."""
        self._has_begun = False
        """Whether any process has ever been ready."""
        self._lost_starts = 0
        self._look_at = time.monotonic() + TASK.look_s
        self._is_open = True
        self._owner = Owner(what)
        self._children = Children()
        try:
            self._start_missing()
        except BaseException:
            self.close()
            raise

    def pids(self) -> list[int]:
        """Return the operating system's process numbers."""
        return [one.child.pid for one in self._processes.values()]

    def give(self, process: int, number: int, work: Any, limit_s: float | None = None) -> None:
        if (one := self._found(process)) is not None:
            one.child.expect(one.child.heard)
            if not one.limits:
                one.began_at = time.monotonic()
            one.limits.append(limit_s)
            self._children.send(one.child, Give(process, number, pickle.dumps(work, pickle.HIGHEST_PROTOCOL)))

    def ask(self, process: int, question: Any) -> None:
        """Send a process a question besides its task."""
        if (one := self._found(process)) is not None:
            self._children.send(one.child, Ask(process, pickle.dumps(question)))

    def dismiss(self, process: int, reason: str) -> None:
        if (one := self._found(process)) is not None:
            self._lose(one, reason)

    def _found(self, process: int) -> _TaskProcess | None:
        self._owner.check()
        return self._processes.get(process)

    def messages(self, timeout_s: float, awaited: int | None = None) -> list[Any]:
        """Return messages, as `BackEnd.messages`; raise what `make` raises, unless it has worked elsewhere."""
        self._owner.check()
        if awaited is None:
            return self._wait(timeout_s)
        try:
            self._children.watch(awaited)
        except PermissionError:  # a regular file, which is always readable
            return self._wait(0.0)
        try:
            return self._wait(timeout_s)
        finally:
            self._children.ignore(awaited)

    def _wait(self, timeout_s: float) -> list[Any]:
        """Wait until there are messages, or the watched descriptor is readable."""
        until = time.monotonic() + timeout_s
        while True:
            pause_s = 0.0 if self._messages else min(until, self._look_at) - time.monotonic()
            for child, messages, has_ended in self._children.wait(max(0.0, pause_s)):
                for message in messages:
                    if child.index in self._processes:
                        self._hear(self._processes[child.index], message)
                if has_ended and child.index in self._processes:
                    self._lose(self._processes[child.index])
            now = time.monotonic()
            if now >= self._look_at:
                self._look_at = now + TASK.look_s
                self._look()
            if self._messages or self._children.was_woken or now >= until:
                messages, self._messages = self._messages, []
                return messages

    def close(self) -> None:
        if not self._is_open or not self._owner.is_here:
            return
        self._is_open = False
        self._ending += [one.child for one in self._processes.values()]
        for child in self._ending:
            child.kill()
        end(self._ending, END_S)  # without a wait they would stay zombies
        self._ending.clear()
        self._processes.clear()
        self._children.close()

    def _start_missing(self) -> None:
        """Start missing processes; a refusal is tried again later. Raises PsearchError when there are none at all."""
        while self._places:
            place, number = min(self._places), self._started
            try:
                child = launch_process(number, TARGET)
            except PsearchError:
                if not self._processes:
                    raise
                return
            self._started += 1
            self._places.discard(place)
            self._processes[number] = _TaskProcess(place, child)
            self._children.add(child)
            self._children.send(child, (number, place, self._make))

    def _lose(self, one: _TaskProcess, reason: str | None = None) -> None:
        """End a process and start another in its place. Raises WorkerDied when too many end before they are ready."""
        child = one.child
        del self._processes[child.index]
        self._children.remove(child)
        child.kill()
        child.join(DEATH_S)
        why = reason or f"it {child.ending}"
        self._ending += reap([child])
        self._messages.append(ProcessLost(child.index, why))
        self._on_note(f"process {child.pid} is replaced: {why}")
        self._lost_starts += not one.is_ready
        if self._lost_starts >= LOST_STARTS:
            raise WorkerDied(f"the processes that do the work end before they are ready, the last because {why}")
        self._places.add(one.place)
        self._start_missing()

    def _hear(self, one: _TaskProcess, message: object) -> None:
        match message:
            case Alive():
                return
            case Raised(_, _, error) if not one.is_ready:
                if not self._has_begun:
                    raise error_of(error)
                self._lose(one, f"it raised {error_of(error)!r}")
                return
            case ProcessJoined():
                one.is_ready = self._has_begun = True
                self._lost_starts = 0
            case Answered() | Raised():
                one.limits.popleft()
                one.began_at = time.monotonic()
        self._messages.append(message)

    def _look(self) -> None:
        """Replace processes whose task is late, and those that are stopped or silent."""
        self._ending = reap(self._ending)
        for one in list(self._processes.values()):
            is_silent = not self._looks or (one.is_ready and not one.limits)
            patience = TASK_IN_SILENCE if is_silent else TASK if one.is_ready else TASK_START
            reason = one.child.why_lost(one.child.heard, patience)
            limit_s = one.limits[0] if one.limits else None
            if limit_s is not None and time.monotonic() - one.began_at > limit_s:
                reason = f"it did not finish within {limit_s:.0f} s"
            if reason is not None:
                self._lose(one, reason)
        self._start_missing()


# -- a list of tasks ---------------------------------------------------------------------------------------------------


def share_out(
    make: Callable[[], Callable[[Task], Answer]], tasks: Sequence[Task], jobs: int
) -> Generator[tuple[int, Answer], None, None]:
    """Distribute tasks to `jobs` processes of this machine. Yield each task's index and answer, in order of completion.

    `make`, called once in each process, returns the function for the tasks; both must be importable from a module other
    than `__main__`. An exception of a task is raised here; then, or after Ctrl-C, the processes end at once. Raises
    WorkerDied if one is lost.
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
    """Distribute tasks, as `share_out`, to existing processes. Each has one task at a time; tasks are read when needed.

    The task of a lost process is given to another, until it is lost `most_tries` times; then, and at the loss of any
    process if there is only one try, WorkerDied is raised. limit_s: seconds for a task, after which its process is
    lost; on_messages: called with all messages, at least five times a second; is_stopped: called as often; True ends
    it.
    """
    source = enumerate(tasks)
    waiting = list(islice(source, 1))
    """Tasks to be given next; empty when there are no more."""
    at: dict[int, tuple[int, Any]] = {}
    """Present task of each busy process."""
    free: set[int] = set()
    losses: Counter[int] = Counter()
    """Number of lost processes by task."""

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
                case Raised(_, _, error):
                    raise error_of(error)
                case Answered(process, place, answer):
                    del at[process]
                    free.add(process)
                    give()  # before the caller spends time on the answer
                    yield place, pickle.loads(answer)
        give()
