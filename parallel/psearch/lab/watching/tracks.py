"""What each worker has done since the last look, as segments of time, from the rings of events that the workers write.

A worker's segments fill the time from look to look without gap or overlap. Of work that was thrown away only the nodes
and the end are known: it is drawn over the time before, while the worker searched, as long as so many nodes take it. So
it may reach back beyond the last look, and its share of the searched time is its share of the nodes. What was
overwritten before it was read is `lost`. Tracks that are too long to be sent are put in cells of equal length, each of
one kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from psearch.trace.recorder import Event, each, split_name
from psearch_core.records import TRACE_ABORT, TRACE_IDLE, TRACE_JOIN, TRACE_TAKE

SEARCH, JOIN, IDLE, ABORTED, LOST = range(5)
"""What a worker does: searches, joins, has no work, did work that was thrown away, is not known."""
_PLAIN = (SEARCH, JOIN, IDLE, LOST)
"""One of these at any moment."""
MOST_SEGMENTS = 48
"""Most segments of one worker in one look; of more, what filled most of each 48th of the time."""
_MOST_READ = 2048
"""Events of one worker in one look: as many as a look should take time for. Of more the oldest are lost."""
_MOST_KEPT = 1024
"""Stretches of searching that work thrown away may be drawn over, the latest: some seconds of a busy search."""


class Segment(NamedTuple):
    """Says what a worker does for a while, in microseconds from the start of the search."""

    kind: int
    begin: int
    end: int
    split: str = ""
    """the open node it helps at, as in traces; empty: none, or several"""


class Clock(NamedTuple):
    """Converts ticks of the workers' clock to microseconds since the start of the search."""

    start: int
    us_per_tick: float

    def microseconds(self, ticks: int) -> int:
        """Return microseconds, never less than zero: counters of two sockets may disagree."""
        return max(0, int((ticks - self.start) * self.us_per_tick))


class Track:
    """Follows one worker from look to look."""

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
        ring = log["events"][0]
        count = int(log["head"]["count"][0])
        first = max(self._seen, count - min(len(ring), _MOST_READ))
        events = _copied(ring, first, count)
        torn = max(0, int(log["head"]["count"][0]) - len(ring) + 1 - first)
        del events[:torn]
        found: list[Segment] = []
        begin = self._since
        if events and first + torn > self._seen:
            self._kind, self._split = LOST, ""
            self._go_on(found, clock.microseconds(events[0].time))
        self._seen = count
        for event in events:
            if event.kind == TRACE_JOIN:
                self._go_on(found, clock.microseconds(event.begin))
                self._kind, self._split = JOIN, ""
            if event.kind in (TRACE_TAKE, TRACE_JOIN, TRACE_IDLE):
                self._go_on(found, clock.microseconds(event.time))
                self._kind = IDLE if event.kind == TRACE_IDLE else SEARCH
                self._split = split_name(event.split) if self._kind == SEARCH and event.frame >= 0 else ""
        self._go_on(found, now)
        segments = in_cells([one for one in found if one.end > one.begin], begin, self._since, MOST_SEGMENTS)
        for one in segments:
            if one.kind == SEARCH:
                self._searched += one.end - one.begin
                goes_on = bool(self._kept) and self._kept[-1][1] == one.begin
                self._kept.append((self._kept.pop()[0] if goes_on else one.begin, one.end))
        del self._kept[:-_MOST_KEPT]
        us_per_node = self._searched / max(nodes - self._nodes, 1)
        wasted = list(self._throw_away(0, begin, "", us_per_node)) if self._is_behind else []
        for event in events:
            if event.kind == TRACE_ABORT and not event.outcome:
                at = clock.microseconds(event.time)
                wasted += self._throw_away(event.value, at, split_name(event.split), us_per_node)
        self._lost -= sum(one.end - one.begin for one in wasted[:-MOST_SEGMENTS])
        self._is_behind = len(wasted) > MOST_SEGMENTS
        return segments + wasted[-MOST_SEGMENTS:]

    def _go_on(self, found: list[Segment], at: int) -> None:
        """Add what the worker did until `at`."""
        found.append(Segment(self._kind, self._since, max(at, self._since), self._split))
        self._since = found[-1].end

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


def _copied(ring: np.ndarray, first: int, count: int) -> list[Event]:
    """Return events `first` to `count` of a ring."""
    if count <= first:
        return []
    begin, end = first % len(ring), (count - 1) % len(ring) + 1
    parts = [ring[begin:end]] if begin < end else [ring[begin:], ring[:end]]
    return [event for part in parts for event in each(part.copy())]


def in_cells(segments: Sequence[Segment], begin: int, end: int, count: int) -> list[Segment]:
    """Return the same time in at most `count` segments, and at most as many of work thrown away.

    Segments follow each other without gap or overlap, but for those of work thrown away, which lie over searching. A
    cell has one kind; what is too short to fill one is counted on, so that each kind has as many cells as it has time.
    Short tracks stay as they are.

    >>> in_cells([Segment(SEARCH, 0, 70), Segment(IDLE, 70, 100)], 0, 100, 4)
    [Segment(kind=0, begin=0, end=70, split=''), Segment(kind=2, begin=70, end=100, split='')]
    """
    if len(segments) <= count or end <= begin:
        return list(segments)
    width = (end - begin) / count
    filled = [[0.0] * (LOST + 1) for _ in range(count)]
    for segment in segments:
        first = min(max(int((segment.begin - begin) / width), 0), count - 1)
        last = min(max(int((segment.end - begin) / width), first), count - 1)
        for cell in range(first, last + 1):
            left, right = begin + cell * width, begin + (cell + 1) * width
            filled[cell][segment.kind] += max(0.0, min(segment.end, right) - max(segment.begin, left))
    plain: list[Segment] = []
    over: list[Segment] = []
    owed = [0.0] * (LOST + 1)
    """time of each kind so far, less the cells that it has"""
    for cell, shares in enumerate(filled):
        left, right = begin + round(cell * width), begin + round((cell + 1) * width)
        owed = [before + share for before, share in zip(owed, shares, strict=True)]
        kind = max((kind for kind in _PLAIN if shares[kind]), key=lambda kind: owed[kind], default=LOST)
        owed[kind] -= width
        _extend(plain, Segment(kind, left, right))
        if kind == SEARCH and shares[ABORTED] and owed[ABORTED] > width / 2:
            owed[ABORTED] -= width
            _extend(over, Segment(ABORTED, left, right))
    return plain + over


def _extend(track: list[Segment], segment: Segment) -> None:
    """Add a segment, to the last one if that is of its kind and ends where it begins."""
    if track and (track[-1].kind, track[-1].end) == (segment.kind, segment.begin):
        track[-1] = track[-1]._replace(end=segment.end)
    else:
        track.append(segment)


def packed(segments: Sequence[Segment]) -> list[list[int | str]]:
    """Pack a segment for JSON: kind, begin, end, and the split node where there is one."""
    return [[*segment] if segment.split else [*segment[:3]] for segment in segments]
