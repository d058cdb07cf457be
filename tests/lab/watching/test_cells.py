"""Long tracks in cells: the same time, in fewer pieces."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from psearch.lab.watching.cells import ABORTED, IDLE, JOIN, LOST, SEARCH, Segment, in_cells, packed


def track(lengths: list[tuple[int, int]]) -> list[Segment]:
    """Segments that follow each other."""
    found, at = [], 0
    for kind, length in lengths:
        found.append(Segment(kind, at, at + length))
        at += length
    return found


def check_covers(segments: list[Segment], begin: int, end: int) -> None:
    assert segments[0].begin == begin and segments[-1].end == end
    for one, other in itertools.pairwise(segments):
        assert one.end == other.begin
        assert one.begin < one.end


@given(
    st.lists(st.tuples(st.sampled_from([SEARCH, JOIN, IDLE, LOST]), st.integers(1, 1000)), min_size=1, max_size=200),
    st.integers(1, 40),
)
def test_the_time_is_covered_by_no_more_than_so_many(lengths: list[tuple[int, int]], count: int) -> None:
    segments = track(lengths)
    end = segments[-1].end
    found = in_cells(segments, 0, end, count)
    assert len(found) <= max(count, 1) or len(segments) <= count
    if end >= count:  # shorter cells than a microsecond are none
        check_covers(found, 0, end)


def test_a_cell_is_what_filled_most_of_it() -> None:
    segments = track([(SEARCH, 30), (IDLE, 20)] * 10 + [(IDLE, 30), (SEARCH, 20)] * 10)
    assert in_cells(segments, 0, 1000, 20) == [Segment(SEARCH, 0, 500), Segment(IDLE, 500, 1000)]


def test_work_thrown_away_is_seen_where_it_is_most_of_a_cell() -> None:
    segments = [*track([(SEARCH, 10)] * 100), Segment(ABORTED, 400, 500)]
    assert in_cells(segments, 0, 1000, 10) == [Segment(SEARCH, 0, 1000), Segment(ABORTED, 400, 500)]


def test_packed_leaves_out_what_is_not_there() -> None:
    assert packed([Segment(SEARCH, 1, 2), Segment(JOIN, 2, 3, "1.7")]) == [[SEARCH, 1, 2], [JOIN, 2, 3, "1.7"]]
