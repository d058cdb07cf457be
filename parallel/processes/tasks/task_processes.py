"""Starts processes of this machine that do tasks, gives them work, listens to them, and replaces those that are lost.

Their twin is `psearch.remote.cluster_processes.ClusterProcesses`, which has such processes on the nodes of a cluster.
"""

from __future__ import annotations

import os
import pickle
import select
import struct
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from psearch.arena.owner import Owner
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
from psearch.processes.worker_process import WorkerProcess, end, reap
from psearch.results import PsearchError, WorkerDied

_LOOK_S = 1.0
"""Between two looks at how the processes are."""
_HALTED_LOOKS = 2
"""A process that is stopped at so many looks in a row is given up: the first may be in the moment in which a program
that was stopped with all its group goes on."""
_SILENT_LOOKS = 60
"""A process that works and has said nothing at so many, though it says something every two seconds, has stalled."""
_START_LOOKS = 120
"""The same for one that begins: there may be kernels to compile."""
_MOST_STILLBORN = 5
"""Processes that end before they are ready, one after the other."""
_LOSS_S = 0.2
"""A process that is killed while others work is waited for so long; if it takes longer, then behind the next looks."""
_END_S = 5.0
"""The same where all are."""
_READ_BYTES = 1 << 18
_HEAD = struct.Struct("!i")
"""What `Connection` puts before a message of less than 2 GiB: its length."""


@dataclass(eq=False)
class _TaskProcess:
    """A process, seen from the program."""

    number: int
    place: int
    process: WorkerProcess
    incoming: bytearray = field(default_factory=bytearray)
    outgoing: bytearray = field(default_factory=bytearray)
    """The program never waits for a process to read, or one that waits for the program would never do so."""
    is_ready: bool = False
    limits: deque[float | None] = field(default_factory=deque)
    """seconds for each task that it has"""
    began_at: float = 0.0
    """the first of them"""
    silent: int = 0
    """looks since it has last said something, while it should"""
    halted: int = 0
    """looks at which it was stopped, in a row"""


class TaskProcesses:
    """So many processes that do tasks; a context manager. For one thread.

    make: picklable, see `task_main`; looks: whether it calls `Program.look`: then a process that is stopped, or works
    and says nothing, is lost, too; what: this is for people; on_note: called with a line for them when a process is
    replaced. Raises PsearchError when no process can be had.
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
        self._by_descriptor: dict[int, _TaskProcess] = {}
        self._ending: list[WorkerProcess] = []
        """killed, and not gone yet"""
        self._messages: list[Any] = []
        """to be given out"""
        self._has_begun = False
        """whether any process has ever been ready"""
        self._stillborn = 0
        self._look_at = time.monotonic() + _LOOK_S
        self._is_open = True
        self._owner = Owner(what)
        self._poll = select.epoll()
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
        return [one.process.pid for one in self._processes.values()]

    def give(self, process: int, number: int, work: Any, limit_s: float | None = None) -> None:
        """See `BackEnd`."""
        self._owner.check()
        one = self._processes.get(process)
        if one is not None:
            one.silent = 0
            if not one.limits:
                one.began_at = time.monotonic()
            one.limits.append(limit_s)
            self._put(one, Give(process, number, pickle.dumps(work, pickle.HIGHEST_PROTOCOL)))

    def ask(self, process: int, question: Any) -> None:
        """Ask a process something beside its task."""
        self._owner.check()
        one = self._processes.get(process)
        if one is not None:
            self._put(one, Ask(process, pickle.dumps(question)))

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
            self._poll.register(awaited, select.EPOLLIN)
        except PermissionError:  # a file, which can be read at any time
            return self._wait(0.0)
        try:
            return self._wait(timeout_s)
        finally:
            self._poll.unregister(awaited)

    def _wait(self, timeout_s: float) -> list[Any]:
        """Wait until something has happened to a process, or where else the poll looks."""
        until = time.monotonic() + timeout_s
        while True:
            now = time.monotonic()
            pause_s = 0.0 if self._messages else min(until, self._look_at) - now
            for descriptor, what in self._poll.poll(max(0.0, pause_s)):
                one = self._by_descriptor.get(descriptor)
                if one is not None:
                    self._follow(one, what == select.EPOLLOUT)
                else:
                    until = now  # what is awaited, or a process that is gone since the poll
            now = time.monotonic()
            if now >= self._look_at:
                self._look_at = now + _LOOK_S
                self._look()
            if self._messages or now >= until:
                messages, self._messages = self._messages, []
                return messages

    def close(self) -> None:
        """See `BackEnd`: what they are at is nobody's any more."""
        if not self._is_open or not self._owner.is_here:
            return
        self._is_open = False
        self._ending += [one.process for one in self._processes.values()]
        for process in self._ending:
            process.kill()
        end(self._ending, _END_S)  # one that nobody has waited for stays in the system's list
        self._ending.clear()
        self._processes.clear()
        self._by_descriptor.clear()
        self._poll.close()

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
        one = _TaskProcess(number, place, launch_process(number, TARGET))
        self._started += 1
        self._places.discard(place)
        self._processes[number] = one
        os.set_blocking(one.process.pipe.fileno(), False)
        for descriptor in one.process.descriptors():
            self._poll.register(descriptor, select.EPOLLIN)
            self._by_descriptor[descriptor] = one
        self._put(one, (number, place, self._make))

    def _lose(self, one: _TaskProcess, reason: str | None = None) -> None:
        """End a process, if it has not ended, and start another in its place. Raises WorkerDied when that is of no
        use."""
        del self._processes[one.number]
        for descriptor in one.process.descriptors():
            self._poll.unregister(descriptor)
            del self._by_descriptor[descriptor]
        one.process.kill()
        one.process.join(_LOSS_S)
        why = reason or f"it {one.process.ending}"
        self._ending += reap([one.process])
        self._messages.append(ProcessLost(one.number, why))
        self._on_note(f"process {one.process.pid} is replaced: {why}")
        self._stillborn += not one.is_ready
        if self._stillborn >= _MOST_STILLBORN:
            raise WorkerDied(f"the processes that do the work end before they are ready, the last because {why}")
        self._places.add(one.place)
        self._start_missing()

    # -- messages ------------------------------------------------------------------------------------------------------

    def _put(self, one: _TaskProcess, message: object) -> None:
        data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
        one.outgoing += _HEAD.pack(len(data)) + data
        self._flush(one)

    def _flush(self, one: _TaskProcess) -> None:
        """Send what there is room for; the rest when there is more."""
        descriptor = one.process.pipe.fileno()
        try:
            while one.outgoing:
                del one.outgoing[: os.write(descriptor, one.outgoing)]
        except BlockingIOError:
            pass
        except OSError:
            one.outgoing.clear()  # it has ended, which the poll sees
        self._poll.modify(descriptor, select.EPOLLIN | (select.EPOLLOUT if one.outgoing else 0))

    def _follow(self, one: _TaskProcess, only_writable: bool) -> None:
        """Do what there is to do at the pipe of a process, which may have ended."""
        if only_writable:
            self._flush(one)
            return
        has_ended = self._read(one)
        for message in _taken(one.incoming):
            self._hear(one, message)
        if one.number not in self._processes:
            return
        if has_ended:
            self._lose(one)
        elif one.outgoing:
            self._flush(one)

    def _read(self, one: _TaskProcess) -> bool:
        """Read all that is there; whether it was the last."""
        descriptor = one.process.pipe.fileno()
        while True:
            try:
                data = os.read(descriptor, _READ_BYTES)
            except BlockingIOError:
                return not one.process.is_alive()
            except OSError:
                return True
            if not data:
                return True
            one.incoming += data

    def _hear(self, one: _TaskProcess, message: object) -> None:
        one.silent = 0
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
                self._stillborn = 0
            case Answered() | Raised():
                one.limits.popleft()
                one.began_at = time.monotonic()
        self._messages.append(message)

    # -- how they are --------------------------------------------------------------------------------------------------

    def _look(self) -> None:
        """Give up processes that are late, and those that do not run any more, though they have not ended."""
        self._ending = reap(self._ending)
        for one in list(self._processes.values()):
            reason = self._why_lost(one)
            if reason is not None:
                self._lose(one, reason)
        self._start_missing()

    def _why_lost(self, one: _TaskProcess) -> str | None:
        """Return why a process is to be given up, if it is."""
        limit_s = one.limits[0] if one.limits else None
        if limit_s is not None and time.monotonic() - one.began_at > limit_s:
            return f"it did not finish within {limit_s:.0f} s"
        if not self._looks:
            return None
        one.halted = one.halted + 1 if one.process.is_halted else 0
        one.silent = one.silent + 1 if one.limits or not one.is_ready else 0
        most = _SILENT_LOOKS if one.is_ready else _START_LOOKS
        if one.halted >= _HALTED_LOOKS:
            return "it was stopped"
        return f"it has said nothing for {most} s" if one.silent >= most else None


def _taken(incoming: bytearray) -> list[Any]:
    """Take the messages that are complete from what has come in."""
    found = []
    start = 0
    while len(incoming) - start >= _HEAD.size:
        (size,) = _HEAD.unpack_from(incoming, start)
        begin = start + _HEAD.size
        if len(incoming) - begin < size:
            break
        found.append(pickle.loads(memoryview(incoming)[begin : begin + size]))
        start = begin + size
    del incoming[:start]
    return found
