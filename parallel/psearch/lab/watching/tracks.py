"""What each worker has done since the last look, as segments of time, from the rings of events that the workers write.

A worker's segments fill the time from look to look without gap or overlap. Of work that was thrown away only the nodes
and the end are known: it is drawn over the time before, while the worker searched, as long as so many nodes take it. So
it may reach back beyond the last look, and its share of the searched time is its share of the nodes. What was
overwritten before it was read is `lost`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from psearch.lab.watching.cells import ABORTED, IDLE, JOIN, LOST, SEARCH, Segment, in_cells
from psearch.trace.recorder import Event, each, split_name
from psearch_core.records import TRACE_ABORT, TRACE_IDLE, TRACE_JOIN, TRACE_TAKE

MOST_SEGMENTS = 48
"""Most segments of one worker in one look; of more, what filled most of each 48th of the time."""
_MOST_READ = 2048
"""Events of one worker in one look: as many as a look should take time for. Of more the oldest are lost."""
_MOST_KEPT = 1024
"""Stretches of searching that work thrown away may be drawn over, the latest: some seconds of a busy search."""


class Track:
    """One worker."""

    def __init__(self, count: int = 0, kind: int = IDLE, since: int = 0, nodes: int = 0) -> None:
        """count, kind, since, nodes: events so far, what the worker does, since when (microseconds), nodes so far."""
        self._seen = count
        self._kind = kind
        self._split = ""
        self._since = since
        self._nodes = nodes
        self._searched = 0
        """microseconds, as drawn"""
        self._lost_nodes = 0
        self._lost = 0
        """microseconds of these, as drawn"""
        self._is_behind = False
        """whether more was thrown away than could be drawn in the last look: the rest is drawn in the next"""
        self._kept: list[tuple[int, int]] = []
        """begin and end of what was searched and not thrown away, as drawn; the latest last"""

    def look(self, log: np.ndarray, clock: Clock, now: int, nodes: int = 0) -> list[Segment]:
        """Return what has been done since the last look, until `now`, microseconds.

        log: a record of head and events, in an array; events come in the order of their times. nodes: that the worker
        has searched.
        """
        capacity = len(log["events"][0])
        count = int(log["head"]["count"][0])
        first = max(self._seen, count - min(capacity, _MOST_READ))
        events = _copied(log["events"][0], first, count, capacity)
        after = int(log["head"]["count"][0])
        torn = max(0, after - capacity + 1 - first)
        found: list[Segment] = []
        begin = self._since
        if first + torn > self._seen and events[torn:]:
            self._switch(found, clock.microseconds(events[torn].time), LOST, "", self._since)
            self._kind = LOST
        self._seen = count
        for event in events[torn:]:
            self._add(found, event, clock)
        now = max(now, self._since)
        self._switch(found, now, self._kind, self._split, self._since)
        segments = in_cells([one for one in found if one.end > one.begin], begin, now, MOST_SEGMENTS)
        for one in segments:
            if one.kind == SEARCH:
                self._searched += one.end - one.begin
                is_one = bool(self._kept) and self._kept[-1][1] == one.begin
                self._kept.append((self._kept.pop()[0] if is_one else one.begin, one.end))
        del self._kept[:-_MOST_KEPT]
        us_per_node = self._searched / max(nodes - self._nodes, 1)
        wasted = list(self._throw_away(0, begin, "", us_per_node)) if self._is_behind else []
        for event in events[torn:]:
            if event.kind == TRACE_ABORT and not event.outcome:
                at = clock.microseconds(event.time)
                wasted += self._throw_away(event.value, at, split_name(event.split), us_per_node)
        self._lost -= sum(one.end - one.begin for one in wasted[:-MOST_SEGMENTS])
        self._is_behind = len(wasted) > MOST_SEGMENTS
        return segments + wasted[-MOST_SEGMENTS:]

    def _throw_away(self, nodes: int, at: int, split: str, us_per_node: float) -> Iterator[Segment]:
        """Take the worker's latest searching before `at` for nodes that were thrown away then.

        What was drawn too long or too short before, at another speed, is made up for.
        """
        self._lost_nodes += nodes
        left = round(self._lost_nodes * us_per_node) - self._lost
        later: list[tuple[int, int]] = []
        while self._kept and left > 0:
            begin, end = self._kept.pop()
            if end > at:
                later.append((max(begin, at), end))
            end = min(end, at)
            cut = max(begin, end - left)
            if cut < end:
                left -= end - cut
                self._lost += end - cut
                yield Segment(ABORTED, cut, end, split)
            if begin < cut <= end:
                self._kept.append((begin, cut))
        self._kept.extend(reversed(later))

    def _add(self, found: list[Segment], event: Event, clock: Clock) -> None:
        at = clock.microseconds(event.time)
        if event.kind == TRACE_IDLE:
            self._switch(found, at, self._kind, self._split, self._since)
            self._kind, self._split = IDLE, ""
        elif event.kind in (TRACE_TAKE, TRACE_JOIN):
            if event.kind == TRACE_JOIN:
                self._switch(found, clock.microseconds(event.begin), self._kind, self._split, self._since)
                self._kind, self._split = JOIN, ""
            self._switch(found, at, self._kind, self._split, self._since)
            self._kind = SEARCH
            self._split = split_name(event.split) if event.frame >= 0 else ""

    def _switch(self, found: list[Segment], at: int, kind: int, split: str, since: int) -> None:
        """The worker did this until `at`."""
        at = max(at, since)
        found.append(Segment(kind, since, at, split))
        self._since = at


class Clock:
    """From ticks of the workers' clock to microseconds since the start of the search."""

    def __init__(self, start: int, us_per_tick: float) -> None:
        self._start = start
        self._us_per_tick = us_per_tick

    def microseconds(self, ticks: int) -> int:
        """Return microseconds, never less than zero: counters of two sockets may disagree."""
        return max(0, int((ticks - self._start) * self._us_per_tick))


def _copied(events: np.ndarray, first: int, count: int, capacity: int) -> list[Event]:
    """Events `first` to `count` of a ring."""
    if count <= first:
        return []
    begin, end = first % capacity, (count - 1) % capacity + 1
    parts = [events[begin:end]] if begin < end else [events[begin:], events[:end]]
    return [event for part in parts for event in each(part.copy())]
