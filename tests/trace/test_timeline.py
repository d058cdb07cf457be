"""Slices on tracks, without a search."""

from __future__ import annotations

import random

from psearch.trace.timeline import Slice, on_lanes


def test_lanes_are_as_few_as_possible_and_nothing_overlaps_on_one() -> None:
    dice = random.Random(7)
    for _ in range(200):
        spans = sorted((begin, begin + dice.randrange(8)) for begin in (dice.randrange(40) for _ in range(30)))
        placed = [(lane, part.begin, part.end) for lane, part in on_lanes(Slice("", *span, {}) for span in spans)]
        assert [span for _, *span in placed] == [list(span) for span in spans]
        for number in {lane for lane, _, _ in placed}:
            ends = [0]
            for begin, end in (span for lane, *span in placed if lane == number):
                assert begin >= ends[-1]
                ends.append(end)
        most = max(sum(begin <= at < max(end, begin + 1) for begin, end in spans) for at in range(48))
        assert len({lane for lane, _, _ in placed}) <= most
