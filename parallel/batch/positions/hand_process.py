"""A hand that is a process of this machine: takes batches from its pipe, until the pipe or the program ends."""

from __future__ import annotations

import gc
import os
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from psearch.batch.positions.hand import Hand, HandSettings, Searched
from psearch.batch.positions.jobs import Batch, Outcome
from psearch.processes.lifetime import end_if_orphan, is_orphan, open_pidfd
from psearch.results import PsearchError

TARGET = "psearch.batch.positions.hand_process:main"
_TELL_INTERVAL_S = 0.2
"""Outcomes that come sooner are put together and told of together: each message wakes the program, and what is done
between two searches, there or here, finds none of its code and data in the processor's caches."""
_COLLECT_INTERVAL_S = 1.0
"""Between two collections of garbage; a search leaves next to none."""
_BEAT_INTERVAL_S = 2.0
"""A hand that searches says so: who says nothing has stalled."""


@dataclass(frozen=True)
class HandStart:
    """The first message to a hand."""

    settings: HandSettings
    cores: tuple[int, ...] = ()
    """to run on; empty: wherever there is room"""
    all_cores: tuple[int, ...] = ()
    """of the farm, for when others have nothing to do"""
    nice: int = 0
    """added to the niceness"""


@dataclass(frozen=True)
class Assist:
    """A message to a hand: so many threads may search from now on."""

    threads: int


@dataclass(frozen=True)
class Ready:
    """The first message of a hand."""


@dataclass(frozen=True)
class Refused:
    """A hand cannot be: the reason is one line."""

    reason: str


@dataclass(frozen=True)
class HandTold:
    """Outcomes; none: it searches still."""

    outcomes: list[Outcome]


def main(pipe: Connection, parent: int) -> None:
    """Run a hand. parent: the number of the process that has forked this one."""
    HandProcess(pipe, parent).run()


class HandProcess:
    """A hand at its pipe."""

    def __init__(self, pipe: Connection, parent: int) -> None:
        self._pipe = pipe
        self._parent = parent
        self._watched = open_pidfd(parent)
        self._start: HandStart
        self._hand: Hand
        self._batches: deque[Batch] = deque()
        self._found: list[Searched] = []
        self._told_at = time.monotonic()
        self._collected_at = 0.0

    def run(self) -> None:
        """Until there is nobody to work for."""
        if is_orphan(self._parent):
            return
        gc.disable()
        try:
            self._start = self._pipe.recv()
            try:
                self._hand = self._begin()
            except PsearchError as error:
                self._pipe.send(Refused(str(error)))
                return
            with self._hand:
                self._pipe.send(Ready())
                self._work()
        except (EOFError, BrokenPipeError, ConnectionResetError):
            return

    def _begin(self) -> Hand:
        if self._start.nice:
            os.nice(self._start.nice)
        self._bind(self._start.cores)
        return self.make(self._start.settings)

    def make(self, settings: HandSettings) -> Hand:
        """What searches."""
        return Hand(settings)

    def _bind(self, cores: Iterable[int]) -> None:
        if cores:
            try:
                os.sched_setaffinity(0, cores)
            except OSError as error:
                raise PsearchError(f"cannot run on cores {', '.join(map(str, cores))}: {error.strerror}") from None

    def _work(self) -> None:
        waiting_for: list[Any] = [self._pipe] if self._watched is None else [self._pipe, self._watched]
        while True:
            while not self._batches:
                if self._pipe not in wait(waiting_for):
                    return
                self._take()
            for searched in self._hand.searches(self._batches.popleft(), self._look):
                self._found.append(searched)
                if time.monotonic() - self._told_at >= _TELL_INTERVAL_S:
                    self._tell()
            if self._found:
                self._tell()

    def _tell(self) -> None:
        found, self._found = self._found, []
        self._pipe.send(HandTold([searched.outcome() for searched in found]))
        self._told_at = time.monotonic()
        if self._told_at - self._collected_at >= _COLLECT_INTERVAL_S:
            gc.collect()
            if not self._collected_at:
                gc.freeze()  # what the first search has imported is no garbage, and need not be looked at again
            self._collected_at = self._told_at

    def _take(self) -> None:
        message = self._pipe.recv()
        if isinstance(message, Assist):
            self._bind(self._start.all_cores)
            self._hand.assist(message.threads)
        else:
            self._batches.append(message)

    def _look(self) -> None:
        """Ten times a second, while it searches."""
        end_if_orphan(self._parent, self._pipe)
        while self._pipe.poll():
            self._take()
        if self._found or time.monotonic() - self._told_at >= _BEAT_INTERVAL_S:
            self._tell()
