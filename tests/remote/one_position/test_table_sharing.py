"""Which entries travel: the least depth follows the traffic, within its bounds."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from psearch.remote.one_position.entry_sharing import LEAST_DEPTH, MOST_DEPTH, Sharing, Threshold, room_of
from psearch.remote.one_position.machine_messages import Parcel


class FakeTable:
    """Finds so many entries of each depth in every period."""

    def __init__(self, at_depth: list[int]) -> None:
        self.at_depth = at_depth
        self.taken = 0
        self.depth: int | None = None

    def log(self, least_depth: int | None) -> None:
        self.depth = least_depth

    def collect(self, room: int) -> tuple[np.ndarray, int]:
        assert self.depth is not None
        found = sum(self.at_depth[self.depth :])
        return np.zeros((min(found, room), 2), np.uint64), found

    def insert(self, batch: np.ndarray) -> int:
        self.taken += len(batch)
        return len(batch) // 2

    def forget(self) -> None:
        self.taken = 0


@given(st.lists(st.tuples(st.integers(0, 10**9), st.integers(1, 10**6)), max_size=200))
def test_the_threshold_stays_within_bounds_and_moves_by_one(traffic: list[tuple[int, int]]) -> None:
    threshold = Threshold()
    for found, room in traffic:
        before = threshold.depth
        threshold.update(found, room)
        assert LEAST_DEPTH <= threshold.depth <= MOST_DEPTH
        if found > room:
            assert threshold.depth == min(before + 1, MOST_DEPTH)
        elif 2 * found < room:
            assert threshold.depth == max(before - 1, LEAST_DEPTH)
        else:
            assert threshold.depth == before


def test_batches_are_filled_and_not_too_full() -> None:
    table = FakeTable([2**20 >> depth for depth in range(20)])
    sharing = Sharing(3, 1000, table)
    sharing.begin()
    for _ in range(30):
        parcel = sharing.pack()
    assert parcel is not None and parcel.machine == 3
    assert 500 <= len(parcel.entries) <= 1000
    assert parcel.bytes < 16 * 1000 + 1000
    sent = sharing.sent
    sharing.forget()
    assert sharing.threshold.depth == Threshold().depth and sharing.sent == sent
    sharing.begin()
    assert table.depth == Threshold().depth
    sharing.end()
    assert table.depth is None


def test_what_comes_is_counted() -> None:
    table = FakeTable([0] * 10)
    sharing = Sharing(0, 10, table)
    sharing.begin()
    assert sharing.pack() is None
    sharing.take(Parcel(1, np.zeros((6, 2), np.uint64)))
    assert (sharing.received, sharing.taken, table.taken) == (6, 3, 6)
    silent = Sharing(0, 10, None)
    silent.take(Parcel(1, np.zeros((6, 2), np.uint64)))
    silent.begin()
    assert silent.pack() is None and silent.taken == 0
    silent.end()


def test_the_line_is_shared_out() -> None:
    assert room_of(1.6e6, 0.01, 2) == 1000 and room_of(1.6e6, 0.01, 6) == 200
    assert room_of(1.6e6, 0.01, 1) == 1000 and room_of(0.0, 0.01, 2) == 1
