"""One search seen from the program, on a pool without processes or on one that misbehaves as it is told to."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import chess
import pytest

from psearch.options import SearchOptions
from psearch.processes import pool as pool_module
from psearch.processes.control import SearchControl
from psearch.processes.pool import INLINE, WorkerPool
from psearch.processes.request import SearchRequest
from psearch.processes.watch import Watch
from psearch.results import Info, Limits, PsearchError, WorkerDied

KIWIPETE = chess.Board("r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1")


@pytest.fixture
def workers() -> Iterator[WorkerPool]:
    one = WorkerPool(1, 1, INLINE)
    yield one
    one.close()


def watch(workers: WorkerPool, request: SearchRequest) -> Watch:
    one = Watch(workers, request, since=time.perf_counter())
    one.run()
    return one


def fail(workers: WorkerPool, monkeypatch: pytest.MonkeyPatch, fails: Callable[[WorkerPool], bool]) -> None:
    """The one worker, run by this process, is lost when that is true from now on; it is asked after every few thousand
    steps of the search."""
    search_here = WorkerPool._search_here

    def fail_or_search(pool: WorkerPool, timeout_s: float) -> None:
        if pool.busy and fails(pool):
            pool.is_broken = True
            raise WorkerDied("worker 0 was killed by signal 9")
        search_here(pool, timeout_s)

    monkeypatch.setattr(pool_module, "_SLICE_S", 0.0)
    monkeypatch.setattr(workers, "_search_here", fail_or_search.__get__(workers))


def test_a_search_from_setup_to_answer(workers: WorkerPool) -> None:
    infos: list[Info] = []
    control = SearchControl()
    request = SearchRequest(KIWIPETE, Limits(depth=4), on_info=infos.append, control=control)
    result = watch(workers, request).result()
    assert result.info.depth == 4 and not result.interrupted and result.notes == []
    assert [info.depth for info in infos if not info.is_live] == [1, 2, 3, 4]
    control.stop()
    workers.wake.clear()  # nobody was there to be woken: it would not be set
    assert workers.are_complete


def test_the_search_goes_on_behind_the_last_finished_iteration(
    workers: WorkerPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    infos: list[Info] = []
    died_at: list[int] = []

    def fails(pool: WorkerPool) -> bool:
        reports = int(pool.arena.header["info_count"][0])
        if len(died_at) < 6 and reports >= 2:
            died_at.append(reports)
            return True
        return False

    fail(workers, monkeypatch, fails)
    one = watch(workers, SearchRequest(KIWIPETE, Limits(depth=10), on_info=infos.append))
    result = one.result()
    assert result.info.depth == 10
    assert result.notes == ["worker 0 was killed by signal 9; new workers go on"] * len(died_at)
    depths = [info.depth for info in infos if info.bound == "exact" and not info.is_live]
    assert depths == list(range(1, 11)), "no iteration is searched twice, and none is left out"
    nodes = [info.nodes for info in infos]
    assert nodes == sorted(nodes)
    assert result.info.nodes == sum(worker.nodes for worker in result.info.workers) >= nodes[-1]


def test_several_lines_go_on_with_their_scores(workers: WorkerPool, monkeypatch: pytest.MonkeyPatch) -> None:
    deaths = iter([True])
    fail(workers, monkeypatch, lambda pool: pool.arena.header["depth"][0] >= 5 and next(deaths, False))
    infos: list[Info] = []
    result = watch(workers, SearchRequest(KIWIPETE, Limits(depth=7), multipv=3, on_info=infos.append)).result()
    assert [line.depth for line in result.lines] == [7, 7, 7] and len(result.notes) == 1
    assert len({line.pv[0] for line in result.lines}) == 3
    assert [info.multipv for info in infos if info.depth == 6 and not info.is_live] == [1, 2, 3]


def test_the_limit_of_nodes_counts_what_the_dead_have_searched(
    workers: WorkerPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    deaths = iter([True])
    fail(workers, monkeypatch, lambda pool: pool.arena.worker["nodes"][0] > 20_000 and next(deaths, False))
    result = watch(workers, SearchRequest(KIWIPETE, Limits(nodes=50_000))).result()
    assert len(result.notes) == 1 and result.info.nodes == 50_000


def test_a_death_at_the_very_end_changes_nothing(workers: WorkerPool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WorkerPool, "_search_here", lambda pool, timeout_s: watching_work(pool))
    fail(workers, monkeypatch, lambda pool: pool.arena.header["depth"][0] == 4 and pool.arena.header["done"][0] == 1)
    result = watch(workers, SearchRequest(KIWIPETE, Limits(depth=4))).result()
    assert result.info.depth == 4
    assert result.notes == ["worker 0 was killed by signal 9; the search was over"]


def watching_work(pool: WorkerPool) -> None:
    """Searches, and does not say that it is through."""
    from psearch.scheduler.scheduler_entries import work

    work(pool.arena.context, 0, 4)


def test_a_death_at_the_limit_leaves_the_move_to_another_search(
    workers: WorkerPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The root's first move is not the answer of a search that has found none."""
    control = SearchControl()
    control.stop()
    fail(workers, monkeypatch, lambda pool: time.sleep(0.02) is None)
    one = watch(workers, SearchRequest(KIWIPETE, Limits(), control=control))
    assert one.knows_nothing and one.result().notes == ["worker 0 was killed by signal 9; the search was over"]


def test_who_dies_of_a_position_is_not_replaced_for_ever(workers: WorkerPool, monkeypatch: pytest.MonkeyPatch) -> None:
    fail(workers, monkeypatch, lambda pool: True)
    with pytest.raises(WorkerDied, match="worker 0 was killed by signal 9, as those before it; the search was stopped"):
        watch(workers, SearchRequest(KIWIPETE, Limits(depth=4)))
    # the same later on, with a move to show
    fail(workers, monkeypatch, lambda pool: pool.arena.header["depth"][0] >= 6)
    result = watch(workers, SearchRequest(KIWIPETE, Limits(depth=12))).result()
    assert result.info.depth >= 5 and result.bestmove == result.info.pv[0]
    assert result.notes[-1].endswith("as those before it; the search was stopped")


@pytest.mark.parametrize("known", [False, True])
def test_when_no_others_can_be_had_what_is_known_is_the_answer(
    workers: WorkerPool, monkeypatch: pytest.MonkeyPatch, known: bool
) -> None:
    def refuse(*arguments: object) -> None:
        raise PsearchError("no memory")

    fail(workers, monkeypatch, lambda pool: pool.arena.header["depth"][0] >= (5 if known else 1))
    monkeypatch.setattr(workers.arena, "renew", refuse)
    request = SearchRequest(KIWIPETE, Limits(depth=8))
    if known:
        result = watch(workers, request).result()
        assert result.info.depth >= 4 and result.bestmove == result.info.pv[0] and result.ponder is not None
        assert result.notes[-1].endswith("the search was stopped, for others cannot be had: no memory")
    else:
        with pytest.raises(WorkerDied, match="others cannot be had: no memory"):
            watch(workers, request)


def test_a_request_wants_a_line() -> None:
    with pytest.raises(PsearchError, match="multipv must be at least 1, not 0"):
        SearchRequest(KIWIPETE, Limits(), SearchOptions(policy="serial"), multipv=0)
