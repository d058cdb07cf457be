"""Hands on the nodes of a Ray cluster (docs/guides/cluster.md). Ray itself is behind `psearch.remote.ray`."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from psearch.batch.positions.crew import Crew, Done, Event
from psearch.batch.positions.hand import Hand, HandSettings
from psearch.batch.positions.jobs import Batch, Outcome
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


class ClusterCrew(Crew):
    """The hands of a cluster, which have the cores that Ray has given them, and no others: they do not assist.

    address: see `psearch.remote.ray.address`; most: hands at the same time; on_note: called with a line for people when
    a node or a hand comes to grief. Raises PsearchError when the cluster cannot be had. `standing` is for whoever shows
    it; `done` of its nodes are positions.
    """

    processes: Link

    def __init__(
        self,
        address: str,
        settings: HandSettings,
        most: int | None = None,
        on_note: Callable[[str], None] = lambda note: None,
    ) -> None:
        beside = BESIDE_MB * (1 if settings.threads == 1 else settings.threads + 1)
        memory = (settings.hash_mb + beside) * 2**20
        super().__init__(Link(address, partial(_begin, settings), settings.threads, memory, most), settings.threads)
        self.standing = Standing(on_note, time.monotonic())

    @staticmethod
    def limit_s(batch: Batch) -> float | None:
        """See `Crew`."""
        seconds = 0.0
        for piece in batch.pieces:
            for _, task in piece.tasks:
                if task.limits.movetime_ms is None:
                    return None
                seconds += task.limits.movetime_ms / 1000 * (_COMPARED if task.line else 1)
        return _SLOWER * seconds + _LATE_S

    def wait(self, timeout_s: float, awaited: int | None = None) -> Sequence[Event]:
        """See `Crew`."""
        events: list[Event] = []
        for message in self.processes.messages(timeout_s if awaited is None else min(timeout_s, _AWAITED_S)):
            self.standing.follow(message, time.monotonic())
            for event in self.events([message]):
                if isinstance(event, Done):
                    self.standing.count(event.hand, len(event.outcomes), time.monotonic())
                    name = self.standing.home[event.hand].name
                    event = replace(event, outcomes=[replace(outcome, hand=name) for outcome in event.outcomes])
                events.append(event)
        self.standing.check(time.monotonic())
        return events

    def standing_line(self) -> str:
        """See `Crew`."""
        return self.standing.line(time.monotonic())

    def work_done(self) -> str:
        """See `Crew`."""
        return self.standing.work_done()


def _begin(settings: HandSettings) -> Callable[[Batch], list[Outcome]]:
    """In each hand: what answers batches there."""
    hand = Hand(settings)
    return lambda batch: list(hand.work(batch))
