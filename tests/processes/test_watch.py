"""One search on a pool that has no processes: what `Watch` asks of a pool, and how it ends."""

from __future__ import annotations

from collections.abc import Iterator

import chess
import pytest

from psearch.arena.arena import Arena
from psearch.options import SearchOptions
from psearch.processes.control import SearchControl
from psearch.processes.request import SearchRequest
from psearch.processes.watch import Watch
from psearch.processes.worker import DONE, GO, work_alone
from psearch.results import Info, Limits, PsearchError

KIWIPETE = chess.Board("r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1")
SERIAL = SearchOptions(policy="serial")


class PoolOfOne:
    """Searches in this process as soon as it is told to, and answers at the next wait."""

    def __init__(self, arena: Arena) -> None:
        self.arena = arena
        self.is_broken = False
        self.events: list[str] = []

    def send(self, index: int, message: bytes) -> None:
        assert (index, message) == (0, GO)
        work_alone(self.arena.context)
        self.events.append("searched")

    def wait(self, timeout_s: float) -> list[int]:
        assert timeout_s > 0
        return [0]

    def receive(self, index: int, expected: bytes) -> bytes:
        assert (index, expected) == (0, DONE)
        self.events.append("received")
        return DONE

    def wake(self) -> None:
        self.events.append("woken")

    def clear_wakes(self) -> None:
        self.events.append("cleared")

    def give_up_silent(self, index: int) -> PsearchError:
        return PsearchError(f"worker {index} is silent")


@pytest.fixture
def pool() -> Iterator[PoolOfOne]:
    arena = Arena(1, 1)
    yield PoolOfOne(arena)
    arena.close()


def watch(pool: PoolOfOne, request: SearchRequest) -> Watch:
    return Watch(pool, request)  # type: ignore[arg-type]  # all of a pool that is needed


def test_a_search_from_setup_to_answer(pool: PoolOfOne) -> None:
    infos: list[Info] = []
    control = SearchControl()
    one = watch(pool, SearchRequest(KIWIPETE, Limits(depth=4), SERIAL, on_info=infos.append, control=control))
    one.run()
    assert pool.events == ["cleared", "searched", "received"]
    result = one.result()
    assert result.info.depth == 4 and not result.interrupted and not pool.is_broken
    assert [info.depth for info in infos if info.bound == "exact"] == [1, 2, 3, 4]
    control.stop()
    assert "woken" not in pool.events, "the search is over: nobody is there to be woken"


def test_the_last_answer_may_come_late(pool: PoolOfOne, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program may have been halted (Ctrl-Z) in between: when all have answered nobody is given up."""
    monkeypatch.setattr("psearch.processes.watch._STOP_TIMEOUT_S", -1.0)
    one = watch(pool, SearchRequest(KIWIPETE, Limits(depth=3), SERIAL))
    one.run()
    assert one.result().info.depth == 3


def test_a_worker_that_stays_away_when_the_search_is_done_is_given_up(
    pool: PoolOfOne, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("psearch.processes.watch._STOP_TIMEOUT_S", 0.02)
    monkeypatch.setattr(pool, "wait", lambda timeout_s: [])
    with pytest.raises(PsearchError, match="worker 0 is silent"):
        watch(pool, SearchRequest(KIWIPETE, Limits(depth=3), SERIAL)).run()
    assert pool.is_broken


def test_a_request_wants_a_line() -> None:
    with pytest.raises(PsearchError, match="multipv must be at least 1, not 0"):
        SearchRequest(KIWIPETE, Limits(), multipv=0)
