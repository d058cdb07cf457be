"""What each worker has done since the last look, as segments of time, from the rings of events that the workers write.

A worker's segments fill the time from look to look without gap or overlap; work that was thrown away lies over them,
and may reach back beyond the last look. What was overwritten before it was read is `lost`.
"""

from __future__ import annotations

import numpy as np

from psearch.core.records import TRACE_ABORT, TRACE_IDLE, TRACE_JOIN, TRACE_TAKE
from psearch.lab.watching.cells import ABORTED, IDLE, JOIN, LOST, SEARCH, Segment, in_cells
from psearch.lab.watching.open_nodes import split_name
from psearch.trace.timeline import Event, each

MOST_SEGMENTS = 48
"""Of one worker in one look; of more, what filled most of each 48th of the time."""
_MOST_READ = 2048
"""Events of one worker in one look: as many as a look should take time for. Of more the oldest are lost."""


class Track:
    """One worker."""

    def __init__(self, count: int = 0, kind: int = IDLE, since: int = 0) -> None:
        """As it is when it is first looked at: so many events, doing this since then (microseconds)."""
        self._seen = count
        self._kind = kind
        self._split = ""
        self._since = since

    def look(self, log: np.ndarray, clock: Clock, now: int, us_per_node: float = 0.0) -> list[Segment]:
        """Return what has been done since the last look, until `now`, microseconds.

        log: a record of head and events, in an array; events come in the order of their times. us_per_node: of this
        worker, about: how long work was that is thrown away, where only its nodes are known.
        """
        capacity = len(log["events"][0])
        count = int(log["head"]["count"][0])
        first = max(self._seen, count - min(capacity, _MOST_READ))
        events = _copied(log["events"][0], first, count, capacity)
        after = int(log["head"]["count"][0])
        torn = max(0, after - capacity + 1 - first)
        found: list[Segment] = []
        if first + torn > self._seen and events[torn:]:
            self._switch(found, clock.microseconds(events[torn].time), LOST, "", self._since)
            self._kind = LOST
        self._seen = count
        for event in events[torn:]:
            self._add(found, event, clock, us_per_node)
        now = max(now, self._since)
        found.append(Segment(self._kind, self._since, now, self._split))
        self._since = now
        segments = [segment for segment in found if segment.end > segment.begin]
        if len(segments) > MOST_SEGMENTS:
            begin = min(segment.begin for segment in segments if segment.kind != ABORTED)
            return in_cells(segments, begin, now, MOST_SEGMENTS)
        return segments

    def _add(self, found: list[Segment], event: Event, clock: Clock, us_per_node: float) -> None:
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
        elif event.kind == TRACE_ABORT:
            begin = clock.microseconds(event.begin) if event.begin < event.time else at - int(event.value * us_per_node)
            found.append(Segment(ABORTED, max(0, min(begin, at)), at, split_name(event.split)))

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
