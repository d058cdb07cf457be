"""Starts processes of this machine that do tasks, gives them work, listens to them, and replaces those that are lost.

Their twin is `psearch.remote.cluster_processes.ClusterProcesses`, which has such processes on the nodes of a cluster.
"""

from __future__ import annotations

import pickle
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from psearch.arena.system_calls import Owner
from psearch.processes.child import ChildProcess, Children, end, reap
from psearch.processes.patience import DEATH_S, END_S, LOST_STARTS, TASK, TASK_IN_SILENCE, TASK_START, Patience
from psearch.processes.starting.launcher import launch_process
from psearch.processes.tasks.task_main import TARGET, Program
from psearch.processes.tasks.task_messages import (
    Alive,
    Answered,
    Ask,
    Give,
    ProcessJoined,
    ProcessLost,
    Raised,
    error_of,
)
from psearch.results import PsearchError, WorkerDied


@dataclass(eq=False)
class _TaskProcess:
    """A process, seen from the program."""

    place: int
    child: ChildProcess
    is_ready: bool = False
    limits: deque[float | None] = field(default_factory=deque)
    """seconds for each task that it has"""
    began_at: float = 0.0
    """the first of them"""


class TaskProcesses:
    """So many processes that do tasks; a context manager. For one thread.

    make: picklable, see `task_main`; looks: whether it calls `Program.look`: then a process that works and says nothing
    is lost, too; what: this is for people; on_note: called with a line for them when a process is replaced. Raises
    PsearchError when no process can be had.
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
        """those without a process"""
        self._looks = looks
        self._on_note = on_note
        self._started = 0
        self._processes: dict[int, _TaskProcess] = {}
        self._ending: list[ChildProcess] = []
        """killed, and not gone yet"""
        self._messages: list[Any] = []
        """to be given out"""
        self._has_begun = False
        """whether any process has ever been ready"""
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

    def __enter__(self) -> TaskProcesses:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def pids(self) -> list[int]:
        """Return the process numbers that the system has given those that there are."""
        return [one.child.pid for one in self._processes.values()]

    def give(self, process: int, number: int, work: Any, limit_s: float | None = None) -> None:
        """See `BackEnd`."""
        self._owner.check()
        one = self._processes.get(process)
        if one is not None:
            one.child.expect(one.child.heard)
            if not one.limits:
                one.began_at = time.monotonic()
            one.limits.append(limit_s)
            work = pickle.dumps(work, pickle.HIGHEST_PROTOCOL)
            self._children.send(one.child, Give(process, number, work))

    def ask(self, process: int, question: Any) -> None:
        """Ask a process something beside its task."""
        self._owner.check()
        one = self._processes.get(process)
        if one is not None:
            self._children.send(one.child, Ask(process, pickle.dumps(question)))

    def dismiss(self, process: int, reason: str) -> None:
        """See `BackEnd`."""
        self._owner.check()
        one = self._processes.get(process)
        if one is not None:
            self._lose(one, reason)

    def messages(self, timeout_s: float, awaited: int | None = None) -> list[Any]:
        """See `BackEnd`. Raises what `make` raises, too, unless it has worked before: then that process is lost."""
        self._owner.check()
        if awaited is None:
            return self._wait(timeout_s)
        try:
            self._children.watch(awaited)
        except PermissionError:  # a file, which can be read at any time
            return self._wait(0.0)
        try:
            return self._wait(timeout_s)
        finally:
            self._children.ignore(awaited)

    def _wait(self, timeout_s: float) -> list[Any]:
        """Wait until something has happened to a process, or where else the poll looks."""
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
        """See `BackEnd`: what they are at is nobody's any more."""
        if not self._is_open or not self._owner.is_here:
            return
        self._is_open = False
        self._ending += [one.child for one in self._processes.values()]
        for child in self._ending:
            child.kill()
        end(self._ending, END_S)  # one that nobody has waited for stays in the system's list
        self._ending.clear()
        self._processes.clear()
        self._children.close()

    # -- beginning and end of a process --------------------------------------------------------------------------------

    def _start_missing(self) -> None:
        """Start as many as are wanted. Raises PsearchError when none at all can be had."""
        while self._places:
            try:
                self._start(min(self._places))
            except PsearchError:
                if not self._processes:
                    raise
                return  # with those that there are, until the next look

    def _start(self, place: int) -> None:
        number = self._started
        one = _TaskProcess(place, launch_process(number, TARGET))
        self._started += 1
        self._places.discard(place)
        self._processes[number] = one
        self._children.add(one.child)
        self._children.send(one.child, (number, place, self._make))

    def _lose(self, one: _TaskProcess, reason: str | None = None) -> None:
        """End a process, if it has not ended, and start another in its place. Raises WorkerDied when that is of no
        use."""
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

    # -- what they say, and how they are -------------------------------------------------------------------------------

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
        """Give up processes that are late, and those that do not run any more, though they have not ended."""
        self._ending = reap(self._ending)
        for one in list(self._processes.values()):
            limit_s = one.limits[0] if one.limits else None
            reason = one.child.why_lost(one.child.heard, self._patience(one))
            if limit_s is not None and time.monotonic() - one.began_at > limit_s:
                reason = f"it did not finish within {limit_s:.0f} s"
            if reason is not None:
                self._lose(one, reason)
        self._start_missing()

    def _patience(self, one: _TaskProcess) -> Patience:
        if not self._looks or (one.is_ready and not one.limits):
            return TASK_IN_SILENCE
        return TASK if one.is_ready else TASK_START
