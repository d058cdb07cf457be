"""Segments of time that say what each worker did since the last look, from the ring of events that it writes.

A worker's segments cover the time between two looks without gap or overlap. Work thrown away is known only by its nodes
and its end, so it is drawn over the preceding search time, as long as that many nodes take; it may reach back beyond
the last look. Events overwritten before they were read leave a `LOST` segment. Long tracks are sampled in cells of
equal length, each of one kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from psearch.trace.recorder import Event, each, split_name
from psearch_core.records import TRACE_ABORT, TRACE_IDLE, TRACE_JOIN, TRACE_ROOT, TRACE_SPLIT, TRACE_TAKE

SEARCH, JOIN, IDLE, ABORTED, LOST = range(5)
"""Kinds of segments: searching, joining, idle, work thrown away, unknown."""
_PLAIN = (SEARCH, JOIN, IDLE, LOST)
"""Kinds of which exactly one holds at any moment."""
MOST_SEGMENTS = 48
"""Most segments of one worker in one look; more are sampled in this many cells."""
_MOST_READ = 2048
"""Most events of one worker in one look, to limit its time. Older events are lost."""
_MOST_KEPT = 1024
"""Latest search segments that work thrown away may be drawn over: some seconds of a busy search."""


class Segment(NamedTuple):
    """Segment of a worker's time; `begin` and `end` are in microseconds since the start of the search."""

    kind: int
    begin: int
    end: int
    split: str = ""
    """Open node at which it helps, as named in traces; empty for none or several."""


class Clock(NamedTuple):
    """Converts ticks of the workers' clock to microseconds since the start of the search."""

    start: int
    us_per_tick: float

    def microseconds(self, ticks: int) -> int:
        """Return microseconds, at least 0, since the counters of two sockets may disagree."""
        return max(0, int((ticks - self.start) * self.us_per_tick))


class Track:
    """Follows one worker from look to look."""

    def __init__(self, count: int = 0, kind: int = IDLE, since: int = 0, nodes: int = 0) -> None:
        """Start with a worker in a known state. count, nodes: its events and nodes so far; kind, since: what it does,
        and since when in microseconds."""
        self.noted: list[Event] = []
        """Events of the last look that end something: a search of the root, an open node, work that was in vain."""
        self._seen = count
        self._kind = kind
        self._split = ""
        self._since = since
        self._nodes = nodes
        self._searched = 0
        """Search time drawn so far, in microseconds."""
        self._lost_nodes = 0
        self._lost = 0
        """Time drawn for these nodes so far, in microseconds."""
        self._is_behind = False
        """Whether the last look could not draw all work thrown away; the next one draws the rest."""
        self._kept: list[tuple[int, int]] = []
        """Begin and end of drawn search time that was not thrown away, latest last."""

    def look(self, log: np.ndarray, clock: Clock, now: int, nodes: int = 0) -> list[Segment]:
        """Return the segments from the last look until `now` (microseconds). log: an array with the record of head and
        events, which are in order of time. nodes: nodes of the worker so far."""
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
            self._add_until(found, clock.microseconds(events[0].time))
        self._seen = count
        self.noted = [event for event in events if event.kind in (TRACE_ROOT, TRACE_SPLIT, TRACE_ABORT)]
        for event in events:
            if event.kind == TRACE_JOIN:
                self._add_until(found, clock.microseconds(event.begin))
                self._kind, self._split = JOIN, ""
            if event.kind in (TRACE_TAKE, TRACE_JOIN, TRACE_IDLE):
                self._add_until(found, clock.microseconds(event.time))
                self._kind = IDLE if event.kind == TRACE_IDLE else SEARCH
                self._split = split_name(event.split) if self._kind == SEARCH and event.frame >= 0 else ""
        self._add_until(found, now)
        segments = in_cells([one for one in found if one.end > one.begin], begin, self._since, MOST_SEGMENTS)
        for one in segments:
            if one.kind == SEARCH:
                self._searched += one.end - one.begin
                is_continued = bool(self._kept) and self._kept[-1][1] == one.begin
                self._kept.append((self._kept.pop()[0] if is_continued else one.begin, one.end))
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

    def _add_until(self, found: list[Segment], at: int) -> None:
        """Add a segment of the present kind that ends at `at`."""
        found.append(Segment(self._kind, self._since, max(at, self._since), self._split))
        self._since = found[-1].end

    def _throw_away(self, nodes: int, at: int, split: str, us_per_node: float) -> Iterator[Segment]:
        """Yield segments for nodes thrown away at `at`, over the latest search time before it. They also correct
        earlier segments that were too long or too short because the speed has changed since."""
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
    return list(each(ring.take(np.arange(first, count), mode="wrap")))


def in_cells(segments: Sequence[Segment], begin: int, end: int, count: int) -> list[Segment]:
    """Return a track in at most `count` segments, plus at most `count` of work thrown away. Short tracks do not change.

    Segments follow each other without gap or overlap, except for work thrown away, which lies over search time. Each
    cell gets one kind; time that does not fill a cell is carried over, so that the cells are in proportion to the time.

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
    """Time of each kind so far, minus the cells that it has got."""
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
    """Append a segment, or extend the last one if that has the same kind and ends where it begins."""
    if track and (track[-1].kind, track[-1].end) == (segment.kind, segment.begin):
        track[-1] = track[-1]._replace(end=segment.end)
    else:
        track.append(segment)


def packed(segments: Sequence[Segment]) -> list[list[int | str]]:
    """Pack segments for JSON: kind, begin, end, and the split node if there is one."""
    return [[*segment] if segment.split else [*segment[:3]] for segment in segments]
