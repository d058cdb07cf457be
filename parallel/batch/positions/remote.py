"""Hands on the nodes of a Ray cluster (docs/guides/cluster.md). Ray itself is behind `psearch.remote.ray`."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from psearch.batch.positions.crew import Done, Event, Joined, Lost
from psearch.batch.positions.hand import Hand, HandSettings
from psearch.batch.positions.jobs import Batch, Outcome
from psearch.remote.ray.driver_messages import Answered, HandJoined, HandLost, Raised
from psearch.remote.ray.link import Link
from psearch.remote.ray.standing import Standing

BESIDE_MB = 200
"""MiB that a hand needs beside its table, and each of its processes if it has some"""
_SLOWER = 3.0
"""So many times its time a batch may take on a machine that is busy,"""
_COMPARED = 4
"""and so many times that where a move of a game may have to be compared, by nodes that make another time there,"""
_LATE_S = 30.0
"""and so many seconds more; then its hand has hung."""
_AWAITED_S = 0.02
"""The link waits in a queue, and for nothing else at the same time."""


class ClusterCrew:
    """The hands of a cluster, as `Crew` has it; a context manager.

    address: see `psearch.remote.ray.address`; most: hands at the same time; on_note: called with a line for people when
    a node or a hand comes to grief. Raises PsearchError when the cluster cannot be had. `standing` is for whoever shows
    it; `done` of its nodes are positions.
    """

    def __init__(
        self,
        address: str,
        settings: HandSettings,
        most: int | None = None,
        on_note: Callable[[str], None] = lambda note: None,
    ) -> None:
        beside = BESIDE_MB * (1 if settings.threads == 1 else settings.threads + 1)
        self._threads = settings.threads
        self._link = Link(
            address, partial(_begin, settings), settings.threads, (settings.hash_mb + beside) * 2**20, most
        )
        self.standing = Standing(on_note, time.monotonic())
        self._batches = 0

    def __enter__(self) -> ClusterCrew:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def send(self, hand: int, batch: Batch) -> None:
        """See `Crew`."""
        self._link.give(hand, self._batches, batch, _limit_s(batch))
        self._batches += 1

    def assist(self, hand: int, threads: int) -> None:
        """Nothing: a hand has the cores that Ray has given it, and no others."""

    def wait(self, timeout_s: float, awaited: int | None = None) -> Sequence[Event]:
        """See `Crew`."""
        events: list[Event] = []
        for message in self._link.messages(timeout_s if awaited is None else min(timeout_s, _AWAITED_S)):
            home = self.standing.home.get(getattr(message, "hand", -1))
            self.standing.follow(message, time.monotonic())
            match message:
                case HandJoined(hand, _, name):
                    events.append(Joined(hand, name, self._threads))
                case HandLost(hand, reason):
                    events.append(Lost(hand, reason))
                case Answered(hand, _, answer) if home is not None:
                    outcomes: list[Outcome] = pickle.loads(answer)
                    self.standing.count(hand, len(outcomes), time.monotonic())
                    events.append(Done(hand, [replace(outcome, hand=home.name) for outcome in outcomes]))
                case Raised(hand, _, error):  # not of a position: those are outcomes
                    self._link.dismiss(hand, f"it raised {pickle.loads(error)!r}")
        self.standing.check(time.monotonic())
        return events

    def standing_line(self) -> str:
        """See `Crew`."""
        return self.standing.line(time.monotonic())

    def work_done(self) -> str:
        """See `Crew`."""
        return self.standing.work_done()

    def close(self) -> None:
        """See `Crew`."""
        self._link.close()


def _begin(settings: HandSettings) -> Callable[[Batch], list[Outcome]]:
    """In each hand: what answers batches there."""
    hand = Hand(settings)
    return lambda batch: list(hand.work(batch))


def _limit_s(batch: Batch) -> float | None:
    """After how long a batch has hung; None where only its times tell how long it takes."""
    seconds = 0.0
    for piece in batch.pieces:
        for _, task in piece.tasks:
            if task.limits.movetime_ms is None:
                return None
            seconds += task.limits.movetime_ms / 1000 * (_COMPARED if task.line else 1)
    return _SLOWER * seconds + _LATE_S
