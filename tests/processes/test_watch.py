"""One search seen from the program, on a pool without processes or on one that misbehaves as it is told to; what wakes
the process that supervises it, and steering without a search."""

from __future__ import annotations

import math
import os
import resource
import select
import signal
import threading
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Pipe

import chess
import pytest
from timing import least, seconds_of, wait_until

from psearch.arena.arena import Arena
from psearch.arena.setup import Progress, write_search
from psearch.options import SearchOptions
from psearch.processes import patience
from psearch.processes import pool as pool_module
from psearch.processes import worker_main as worker
from psearch.processes.control import SearchControl, Wake
from psearch.processes.lifetime import can_write
from psearch.processes.patience import Patience
from psearch.processes.pool import INLINE, WorkerPool
from psearch.processes.request import SearchRequest
from psearch.processes.supervisor import Supervisor
from psearch.processes.time_manager import Budget, TimeManager
from psearch.processes.watch import Watch
from psearch.results import Info, Limits, PsearchError, Result, WorkerDied
from psearch.scheduler.scheduler_entries import reports_written, set_deadline, work

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
    result = watch(workers, SearchRequest(KIWIPETE, Limits(depth=4), on_info=infos.append, control=control)).result()
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
    result = watch(workers, SearchRequest(KIWIPETE, Limits(depth=10), on_info=infos.append)).result()
    assert result.info.depth == 10
    assert result.notes == ["worker 0 was killed by signal 9; new workers continue"] * len(died_at)
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
        assert result.notes[-1].endswith("the search was stopped, because no others can be started: no memory")
    else:
        with pytest.raises(WorkerDied, match="no others can be started: no memory"):
            watch(workers, request)


def test_a_request_wants_a_line() -> None:
    with pytest.raises(PsearchError, match="multipv must be at least 1, not 0"):
        SearchRequest(KIWIPETE, Limits(), SearchOptions(policy="serial"), multipv=0)


MOST_WAKES_PER_S = 25
"""A look every 0.15 s, and what the system adds; it was a hundred when the supervisor looked by itself."""


def search_alone(board: chess.Board, depth: int) -> tuple[int, list[str]]:
    """Return what the process driver of one worker says of a search, and how many reports there were. No process is
    started, and no clock is in it: always the same."""
    ours, theirs = Pipe()
    with ours, theirs:
        arena = Arena(1, 1)
        write_search(arena, board, Limits(depth=depth), SearchOptions())
        worker._search(arena, 0, theirs, os.getppid())
        written = reports_written(arena.context)
        arena.close()
        said = []
        while ours.poll(0):
            said.append(ours.recv())
        return written, said


def test_reports_between_two_looks_are_told_of_once() -> None:
    written, said = search_alone(KIWIPETE, 9)
    assert written >= 9
    assert set(said) == {worker.REPORTED} and 2 <= len(said) < written
    assert search_alone(chess.Board(), 1)[1] == [], "that it is over is told anyway"


def test_who_does_not_read_holds_up_no_worker() -> None:
    """The program may be stopped, or in a callback, for hours."""
    ours, theirs = Pipe()
    sent = 0
    while can_write(theirs):
        theirs.send(worker.REPORTED)  # would hang the test if it had to wait
        sent += 1
    assert sent > 50
    for _ in range(sent):
        assert ours.recv() == worker.REPORTED
    assert can_write(theirs)
    ours.close()
    theirs.close()


def sleep_until_woken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "SEARCH", Patience(1000.0, 100))


def looks(infos: list[Info]) -> int:
    return len({round(info.time_s, 4) for info in infos})


@pytest.mark.parametrize("method", ["fork", "forkserver"])
def test_a_report_wakes_the_supervisor(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sleep_until_woken(monkeypatch)
    infos: list[Info] = []
    with Supervisor(2, 16, start_method=method) as engine:
        for _ in range(2):
            infos.clear()
            control = SearchControl()

            def take(info: Info, control: SearchControl = control) -> None:
                infos.append(info)
                if looks(infos) >= 3:
                    control.stop()

            limits = Limits(movetime_ms=10_000)
            engine.search(SearchRequest(KIWIPETE, limits, on_info=take, control=control, live_interval_s=math.inf))
            assert looks(infos) >= 3, "all reports were found at the end"
            assert infos[0].time_s < 8
            for lost in engine.pool.workers:  # those that come after them do as well
                lost.kill()


def test_without_a_word_of_reports_the_search_is_shown_and_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "can_write", lambda pipe: False)  # as it is in a fork of this process
    infos: list[Info] = []
    with Supervisor(2, 16, start_method="fork") as engine:
        request = SearchRequest(KIWIPETE, Limits(movetime_ms=700), on_info=infos.append, live_interval_s=math.inf)

        def seconds() -> float:
            infos.clear()
            engine.forget()
            return seconds_of(lambda: results.append(engine.search(request)))

        results: list[Result] = []
        assert 0.69 < least(seconds, 1.2) < 1.2
        assert results[-1].info.depth >= 4 and 2 <= looks(infos) <= 8


def test_workers_end_a_search_whose_program_is_held_up() -> None:
    """Its thread may wait long for a core that the workers use."""
    seen: list[tuple[int, int]] = []
    with Supervisor(2, 16) as engine:

        def take(info: Info) -> None:
            if not seen:
                wait_until(lambda: engine.arena.header["stop"][0] == 1)  # by a worker: this thread is here
                nodes = []
                for _ in range(2):
                    time.sleep(0.3)
                    nodes.append(int(engine.arena.worker["nodes"].sum()))
                seen.append((nodes[0], nodes[1]))

        result = engine.search(SearchRequest(KIWIPETE, Limits(movetime_ms=200), on_info=take))
    assert seen[0][0] == seen[0][1] == result.info.nodes > 1000
    assert result.bestmove is not None and not result.interrupted


def test_a_limit_of_centuries_is_none(workers: WorkerPool) -> None:
    control = SearchControl(TimeManager(Budget(hard_s=1e10)))
    assert watch(workers, SearchRequest(KIWIPETE, Limits(depth=6), control=control)).result().info.depth == 6


@pytest.mark.parametrize("is_continued", [False, True])
def test_a_worker_keeps_the_deadline_after_the_first_iterations(workers: WorkerPool, is_continued: bool) -> None:
    """They may be those of workers that were lost."""
    arena = workers.arena
    progress = Progress(9, [chess.Move.from_uci("e2a6")], [0]) if is_continued else None
    write_search(arena, KIWIPETE, Limits(), SearchOptions(), multipv=3, progress=progress)
    set_deadline(arena.context, 1)
    for _ in range(100):
        work(arena.context, 0, 1)
        if arena.header["stop"][0]:
            break
    assert arena.header["stop"][0] == 1
    assert reports_written(arena.context) == 0 if is_continued else reports_written(arena.context) >= 4 * 3
    assert is_continued or arena.header["depth"][0] >= 4


def test_workers_have_no_deadline_while_the_program_ponders(workers: WorkerPool) -> None:
    deadlines: list[int] = []
    control = SearchControl(TimeManager(Budget(hard_s=0.3), pondering=True))

    def take(info: Info) -> None:
        deadlines.append(int(workers.arena.header["deadline"][0]))
        if len(deadlines) == 3:
            control.ponderhit()

    one = watch(workers, SearchRequest(KIWIPETE, Limits(), on_info=take, control=control, live_interval_s=0.01))
    assert set(deadlines[:3]) == {0}
    meant_ns = 1e9 * (control.clock.deadline_s() + one.since) if control.clock else 0
    assert abs(deadlines[-1] - meant_ns) < 1e6


@pytest.mark.parametrize("policy", ["calibrated", "lazy", "abdada"])
def test_with_an_empty_clock_one_thread_waits_for_no_worker(policy: str) -> None:
    """The workers sleep. With roots for them it would yield its core again and again, a second where others use it."""
    with Supervisor(8, 16) as engine:
        control = SearchControl(TimeManager(Budget(0.001, 0.001, 0.1)))
        result = engine.search(
            SearchRequest(KIWIPETE, Limits(), SearchOptions(policy=policy, driver="auto"), control=control)
        )
        header = engine.arena.header[0]
        assert header["first_roots"] == header["done"] == 1
        assert result.info.depth >= 1 and result.info.workers[0].nodes == result.info.nodes
        assert (
            engine.arena.worker["counters"]["polls"].sum() <= 1 and engine.arena.worker["counters"]["splits"].sum() == 0
        )


def test_the_supervisor_sleeps() -> None:
    seconds = 1.5
    lines: list[Info] = []
    with Supervisor(2, 16) as engine:
        engine.search(SearchRequest(KIWIPETE, Limits(depth=4)))
        wakes, used_s = resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw, time.thread_time()
        request = SearchRequest(
            KIWIPETE, Limits(movetime_ms=1000 * seconds), on_info=lines.append, live_interval_s=math.inf
        )
        engine.search(request)
        used_s = time.thread_time() - used_s
        wakes = resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw - wakes
    assert wakes <= MOST_WAKES_PER_S * seconds + len(lines), f"{wakes} times, for {len(lines)} reports"
    assert used_s < 0.05 * seconds + 0.003 * len(lines)


def test_counters_are_shown_as_often_as_they_are_wanted() -> None:
    with Supervisor(1, 16) as engine:
        for begin_s, interval_s, fewest, most in ((0.0, 0.2, 3, 6), (0.6, 0.4, 1, 2), (0.0, math.inf, 0, 0)):
            live: list[Info] = []
            request = SearchRequest(
                KIWIPETE,
                Limits(movetime_ms=1200),
                on_info=lambda info, live=live: live.append(info) if info.is_live else None,  # type: ignore[misc]
                live_from_s=begin_s,
                live_interval_s=interval_s,
            )
            engine.search(request)
            assert fewest <= len(live) <= most
            assert all(info.time_s >= begin_s for info in live)


def test_without_processes_a_report_ends_the_slice() -> None:
    pool = WorkerPool(1, 1, INLINE)
    write_search(pool.arena, KIWIPETE, Limits(depth=7), SearchOptions())
    pool.begin()
    seen = []
    while pool.busy:
        pool.collect(math.inf)
        seen.append(reports_written(pool.arena.context))
    assert len(set(seen)) >= 2 and seen[-1] >= 7
    pool.close()


def test_only_an_attached_search_is_woken() -> None:
    control = SearchControl()
    woken: list[str] = []
    control.ponderhit()
    control.attach(lambda: woken.append("first"))
    assert woken == [] and control.take_ponderhit() and not control.take_ponderhit()
    control.stop()
    control.attach(lambda: woken.append("second"))
    control.ponderhit()
    control.attach(None)
    control.stop()
    assert woken == ["first", "second"] and control.is_stopped


@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="signals come to the main thread")
def test_a_signal_may_stop_in_the_midst_of_any_call() -> None:
    """Its handler runs in the thread that holds the lock."""
    control = SearchControl()
    woken: list[int] = []

    def wake() -> None:
        woken.append(len(woken))
        if len(woken) == 1:
            signal.raise_signal(signal.SIGUSR1)

    former = signal.signal(signal.SIGUSR1, lambda number, frame: control.stop())
    try:
        control.attach(wake)
        control.ponderhit()
    finally:
        signal.signal(signal.SIGUSR1, former)
    assert control.is_stopped and woken == [0, 1]


def test_a_wake_is_set_once_by_any_number_of_calls() -> None:
    wake = Wake()
    for calls in (1, 3, 100_000):  # more than a pipe holds
        assert select.select([wake], [], [], 0)[0] == []
        for _ in range(calls):
            wake.set()
        assert select.select([wake], [], [], 0)[0] == [wake]
        wake.clear()
    timer = threading.Timer(0.05, wake.set)
    timer.start()
    assert select.select([wake], [], [], 30)[0] == [wake]
    timer.join()
    wake.close()
