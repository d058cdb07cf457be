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


@given(
    st.lists(
        st.tuples(st.sampled_from([SEARCH, JOIN, IDLE]), st.integers(1, 1000), st.floats(0, 1)),
        min_size=20,
        max_size=200,
    )
)
def test_each_kind_has_as_many_cells_as_it_has_time(parts: list[tuple[int, int, float]]) -> None:
    """However short its stretches are; and work thrown away lies over searching."""
    plain = track([(kind, length) for kind, length, _ in parts])
    wasted = [
        Segment(ABORTED, one.end - round(share * (one.end - one.begin)), one.end)
        for one, (kind, _, share) in zip(plain, parts, strict=True)
        if kind == SEARCH and round(share * (one.end - one.begin))
    ]
    end = plain[-1].end
    found = in_cells([*plain, *wasted], 0, end, 10)
    for kind in (SEARCH, JOIN, IDLE):
        assert abs(time_of(found, kind) - time_of(plain, kind)) <= 0.3 * end + 10
    searched = [one for one in found if one.kind == SEARCH]
    for one in found:
        if one.kind == ABORTED:
            assert any(other.begin <= one.begin and one.end <= other.end for other in searched)


def time_of(segments: list[Segment], kind: int) -> int:
    return sum(one.end - one.begin for one in segments if one.kind == kind)


def test_stretches_shorter_than_half_a_cell_are_counted_on() -> None:
    """A tenth of the time idle, and a fifth thrown away: so much of the picture is."""
    segments = track([(SEARCH, 90), (IDLE, 10)] * 1000)
    segments += [Segment(ABORTED, 100 * number + 70, 100 * number + 90) for number in range(1000)]
    found = in_cells(segments, 0, 100_000, 400)
    assert abs(time_of(found, IDLE) - 10_000) <= 500
    assert abs(time_of(found, ABORTED) - 20_000) <= 500


def test_work_thrown_away_is_seen_where_it_is_most_of_a_cell() -> None:
    segments = [*track([(SEARCH, 10)] * 100), Segment(ABORTED, 400, 500)]
    assert in_cells(segments, 0, 1000, 10) == [Segment(SEARCH, 0, 1000), Segment(ABORTED, 400, 500)]


def test_packed_leaves_out_what_is_not_there() -> None:
    assert packed([Segment(SEARCH, 1, 2), Segment(JOIN, 2, 3, "1.7")]) == [[SEARCH, 1, 2], [JOIN, 2, 3, "1.7"]]
