"""Tracks that are too long to be sent: in cells of equal length, each of one kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

SEARCH, JOIN, IDLE, ABORTED, LOST = range(5)
"""What a worker does: searches, joins, has no work, did work that was thrown away, is not known."""
KINDS = ("search", "join", "idle", "aborted", "lost")
_PLAIN = (SEARCH, JOIN, IDLE, LOST)
"""One of these at any moment."""


class Segment(NamedTuple):
    """A worker does one thing for a while; microseconds from the start of the search."""

    kind: int
    begin: int
    end: int
    split: str = ""
    """the open node it helps at, as in traces; empty: none, or several"""


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
    filled = [[0.0] * len(KINDS) for _ in range(count)]
    for segment in segments:
        first = min(max(int((segment.begin - begin) / width), 0), count - 1)
        last = min(max(int((segment.end - begin) / width), first), count - 1)
        for cell in range(first, last + 1):
            left, right = begin + cell * width, begin + (cell + 1) * width
            filled[cell][segment.kind] += max(0.0, min(segment.end, right) - max(segment.begin, left))
    plain: list[Segment] = []
    over: list[Segment] = []
    owed = [0.0] * len(KINDS)
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
