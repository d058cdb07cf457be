"""Hands that are processes of this machine. One that dies or stalls is replaced."""

from __future__ import annotations

import os
import pickle
import select
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from psearch.arena.blocks import MIB
from psearch.arena.control_groups import available_memory
from psearch.arena.owner import Owner
from psearch.batch.positions.crew import Done, Event, Joined, Lost
from psearch.batch.positions.hand import HandSettings
from psearch.batch.positions.hand_process import TARGET, Assist, HandStart, HandTold, Ready, Refused
from psearch.batch.positions.jobs import Batch
from psearch.processes.lifetime import process_state
from psearch.processes.pool import reap
from psearch.processes.starting.launcher import launch_process
from psearch.processes.worker_process import WorkerProcess
from psearch.results import PsearchError, WorkerDied
from psearch.scheduler.scheduler_entries import load_kernels

_LOOK_S = 1.0
"""Between two looks at how the hands are."""
_HALTED_LOOKS = 2
"""A hand that is stopped at so many looks in a row is given up: the first may be in the moment in which a program that
was stopped with all its group goes on."""
_SILENT_LOOKS = 60
"""A hand that searches and has said nothing at so many, though it says something every two seconds, has stalled."""
_START_LOOKS = 120
"""The same for one that begins: there may be kernels to compile."""
_MOST_STILLBORN = 5
"""Hands that end before they are ready, one after the other."""
_LOSS_S = 0.2
"""A hand that is killed while others search is waited for so long; if it takes longer, then behind the next looks."""
_END_S = 5.0
"""The same where all are."""
_READ_BYTES = 1 << 18
_HALTED = ("T", "t")
_HEAD = struct.Struct("!i")
_LONG_HEAD = struct.Struct("!Q")
"""What `Connection` puts before a message: its length, or -1 and then its length."""


@dataclass
class _Local:
    """A hand, seen from the program."""

    number: int
    process: WorkerProcess
    incoming: bytearray = field(default_factory=bytearray)
    outgoing: bytearray = field(default_factory=bytearray)
    """The program never waits for a hand to read, or a hand that waits for the program would never do so."""
    is_ready: bool = False
    tasks: int = 0
    """in flight"""
    silent: int = 0
    """looks since it has last said something, while it should"""
    halted: int = 0
    """looks at which it was stopped, in a row"""


class LocalCrew:
    """So many hand processes on this machine; a `Crew`, and a context manager.

    settings: of each hand; cores: their numbers, each hand is bound to as many of them as it has threads, None: to
    none; nice: added to the niceness of the hands; on_note: called with a line for people when a hand was lost;
    start_method: see `launch`; target: what they run, see `launch_process`. Raises PsearchError when there is not
    enough memory, or no process can be had.
    """

    def __init__(
        self,
        hands: int,
        settings: HandSettings,
        *,
        cores: Sequence[int] | None = None,
        nice: int = 0,
        on_note: Callable[[str], None] = lambda note: None,
        start_method: str | None = None,
        target: str = TARGET,
    ) -> None:
        self._settings = settings
        self._cores = tuple(cores or ())
        self._nice = nice
        self._on_note = on_note
        self._start_method = start_method
        self._target = target
        self._wanted = hands
        self._next = 0
        self._hands: dict[int, _Local] = {}
        self._places: dict[int, int] = {}
        """which share of the cores each hand has"""
        self._ending: list[WorkerProcess] = []
        """killed, and not gone yet"""
        self._events: list[Event] = []
        self._stillborn = 0
        self._look_at = time.monotonic() + _LOOK_S
        self._is_open = True
        self._owner = Owner("analysis")
        self.lost = 0
        """hands, so far"""
        _check_memory(hands, settings.hash_mb)
        load_kernels()  # compiled once, not by each hand
        self._poll = select.epoll()
        self._by_descriptor: dict[int, _Local] = {}
        try:
            self._start_missing()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> LocalCrew:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def pids(self) -> list[int]:
        """Of the hands that there are."""
        return [hand.process.pid for hand in self._hands.values()]

    def send(self, hand: int, batch: Batch) -> None:
        """See `Crew`."""
        self._owner.check()
        local = self._hands.get(hand)
        if local is not None:
            local.tasks += batch.size
            local.silent = 0
            self._put(local, batch)

    def assist(self, hand: int, threads: int) -> None:
        """See `Crew`."""
        self._owner.check()
        local = self._hands.get(hand)
        if local is not None:
            self._put(local, Assist(threads))

    def wait(self, timeout_s: float, awaited: int | None = None) -> list[Event]:
        """See `Crew`."""
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

    def _wait(self, timeout_s: float) -> list[Event]:
        """Until something has happened to a hand, or where else the poll looks."""
        end = time.monotonic() + timeout_s
        while True:
            now = time.monotonic()
            pause_s = 0.0 if self._events else min(end, self._look_at) - now
            for descriptor, what in self._poll.poll(max(0.0, pause_s)):
                local = self._by_descriptor.get(descriptor)
                if local is not None:
                    self._follow(local, what == select.EPOLLOUT)
                else:
                    end = now  # what is awaited, or a hand that is gone since the poll
            now = time.monotonic()
            if now >= self._look_at:
                self._look_at = now + _LOOK_S
                self._look()
            if self._events or now >= end:
                events, self._events = self._events, []
                return events

    def standing_line(self) -> str:
        """See `Crew`."""
        return ""

    def work_done(self) -> str:
        """See `Crew`."""
        return ""

    def close(self) -> None:
        """End all hands at once: what they are at is nobody's any more. May be called twice."""
        if not self._is_open or not self._owner.is_here:
            return
        self._is_open = False
        self._ending += [local.process for local in self._hands.values()]
        for process in self._ending:
            process.kill()
        end = time.monotonic() + _END_S
        for process in self._ending:
            process.join(end - time.monotonic())  # one that nobody has waited for stays in the system's list
            process.close()
        self._ending.clear()
        self._hands.clear()
        self._by_descriptor.clear()
        self._poll.close()

    # -- beginning and end of a hand -----------------------------------------------------------------------------------

    def _start_missing(self) -> None:
        """As many hands as are wanted. Raises PsearchError when none at all can be had."""
        while len(self._hands) < self._wanted:
            try:
                self._start()
            except PsearchError:
                if not self._hands:
                    raise
                return  # with those that there are, until the next look

    def _start(self) -> None:
        number = self._next
        local = _Local(number, launch_process(number, self._target, self._start_method))
        self._next += 1
        self._hands[number] = local
        self._places[number] = min(set(range(self._wanted)) - set(self._places.values()))
        descriptor = local.process.pipe.fileno()
        os.set_blocking(descriptor, False)
        for one in (descriptor, local.process.sentinel):
            if one is not None:
                self._poll.register(one, select.EPOLLIN)
                self._by_descriptor[one] = local
        self._put(local, HandStart(self._settings, self._share(number), self._cores, self._nice))

    def _share(self, number: int) -> tuple[int, ...]:
        """The cores of a hand."""
        if not self._cores:
            return ()
        first = self._places[number] * self._settings.threads
        return tuple(self._cores[(first + more) % len(self._cores)] for more in range(self._settings.threads))

    def _lose(self, local: _Local, reason: str | None = None) -> None:
        """A hand has ended, or is ended now; another takes its place. Raises WorkerDied when that is of no use."""
        del self._hands[local.number], self._places[local.number]
        for one in (local.process.pipe.fileno(), local.process.sentinel):
            if one is not None:
                self._poll.unregister(one)
                del self._by_descriptor[one]
        local.process.kill()
        local.process.join(_LOSS_S)
        why = reason or f"it {local.process.ending}"
        self._ending += reap([local.process])
        self.lost += 1
        self._on_note(f"process {local.process.pid} is replaced: {why}")
        if local.is_ready:
            self._events.append(Lost(local.number, why))
        else:
            self._stillborn += 1
            if self._stillborn >= _MOST_STILLBORN:
                raise WorkerDied(f"the processes that search end before they are ready, the last because {why}")
        self._start_missing()

    # -- messages ------------------------------------------------------------------------------------------------------

    def _put(self, local: _Local, message: object) -> None:
        data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
        head = _HEAD.pack(len(data)) if len(data) < 2**31 - 1 else _HEAD.pack(-1) + _LONG_HEAD.pack(len(data))
        local.outgoing += head + data
        self._flush(local)

    def _flush(self, local: _Local) -> None:
        """Send what there is room for; the rest when there is more."""
        descriptor = local.process.pipe.fileno()
        try:
            while local.outgoing:
                del local.outgoing[: os.write(descriptor, local.outgoing)]
        except BlockingIOError:
            pass
        except OSError:
            local.outgoing.clear()  # it has ended, which `wait` sees
        self._poll.modify(descriptor, select.EPOLLIN | (select.EPOLLOUT if local.outgoing else 0))

    def _follow(self, local: _Local, only_writable: bool) -> None:
        """Something has happened at a hand's pipe, or it has ended."""
        if only_writable:
            self._flush(local)
            return
        has_ended = self._read(local)
        for message in _messages(local.incoming):
            self._hear(local, message)
        if has_ended and local.number in self._hands:
            self._lose(local)
        elif local.outgoing:
            self._flush(local)

    def _read(self, local: _Local) -> bool:
        """All that is there. Whether it was the last."""
        descriptor = local.process.pipe.fileno()
        while True:
            try:
                data = os.read(descriptor, _READ_BYTES)
            except BlockingIOError:
                return not local.process.is_alive()
            except OSError:
                return True
            if not data:
                return True
            local.incoming += data

    def _hear(self, local: _Local, message: Any) -> None:
        local.silent = 0
        match message:
            case HandTold(outcomes):
                if outcomes:
                    local.tasks -= len(outcomes)
                    self._events.append(Done(local.number, outcomes))
            case Ready():
                local.is_ready = True
                self._stillborn = 0
                self._events.append(Joined(local.number, str(local.process.pid), self._settings.threads))
            case Refused(reason):
                raise PsearchError(reason)

    # -- how they are --------------------------------------------------------------------------------------------------

    def _look(self) -> None:
        """Hands that do not run any more, though they have not ended, are given up."""
        self._ending = reap(self._ending)
        for local in list(self._hands.values()):
            local.halted = local.halted + 1 if process_state(local.process.pid) in _HALTED else 0
            local.silent = local.silent + 1 if local.tasks or not local.is_ready else 0
            most = _SILENT_LOOKS if local.is_ready else _START_LOOKS
            if local.halted >= _HALTED_LOOKS:
                self._lose(local, "it was stopped")
            elif local.silent >= most:
                self._lose(local, f"it has said nothing for {most} s")
        self._start_missing()


def _messages(incoming: bytearray) -> list[Any]:
    """Those that are complete, taken from what has come in."""
    found = []
    start = 0
    while len(incoming) - start >= _HEAD.size:
        (size,) = _HEAD.unpack_from(incoming, start)
        begin = start + _HEAD.size
        if size == -1:
            if len(incoming) - begin < _LONG_HEAD.size:
                break
            (size,) = _LONG_HEAD.unpack_from(incoming, begin)
            begin += _LONG_HEAD.size
        if len(incoming) - begin < size:
            break
        found.append(pickle.loads(memoryview(incoming)[begin : begin + size]))
        start = begin + size
    del incoming[:start]
    return found


def _check_memory(hands: int, hash_mb: int) -> None:
    needed, available = hands * hash_mb * MIB, available_memory()
    if needed > available:
        raise PsearchError(
            f"not enough memory: {hands} searches with a hash of {hash_mb} MB each need {needed // MIB:,} MB, "
            f"{max(available, 0) // MIB:,} MB are available"
        )
