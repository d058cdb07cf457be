"""Reports wake the process that supervises a search; else it sleeps until something is due."""

from __future__ import annotations

import math
import os
import resource
import time
from multiprocessing.connection import Pipe

import chess
import pytest
from timing import least, seconds_of

from psearch.arena.arena import Arena
from psearch.arena.setup import write_search
from psearch.options import SearchOptions
from psearch.processes import patience
from psearch.processes import worker_main as worker
from psearch.processes.control import SearchControl
from psearch.processes.lifetime import can_write
from psearch.processes.patience import Patience
from psearch.processes.pool import INLINE, WorkerPool
from psearch.processes.request import SearchRequest
from psearch.processes.supervisor import Supervisor
from psearch.results import Info, Limits, Result
from psearch.scheduler.scheduler_entries import reports_written

KIWIPETE = chess.Board("r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1")
MOST_WAKES_PER_S = 25
"""A look every 0.15 s, and what the system adds; it was a hundred when the supervisor looked by itself."""


def search_alone(board: chess.Board, depth: int) -> tuple[int, list[str]]:
    """What the process driver of one worker says of a search, and how many reports there were. No process is started,
    and no clock is in it: always the same."""
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
    """How many were behind these reports."""
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
