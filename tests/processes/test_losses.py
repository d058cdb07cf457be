"""Workers that die or are halted at any moment: the answer is in time, what was found is kept, and the next search has
a full set of workers."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing.connection import Connection

import chess
import pytest
from timing import When, least, seconds_of, usual, wait_for_ends, wait_until

from psearch.arena.arena import Arena
from psearch.arena.validate import leftovers
from psearch.options import SearchOptions
from psearch.processes import child, patience, pool
from psearch.processes.child import ChildProcess, Children
from psearch.processes.control import SearchControl
from psearch.processes.fork_server import ForkServer
from psearch.processes.lifetime import process_state
from psearch.processes.perft_tasks import count_leaves
from psearch.processes.pool import WorkerPool
from psearch.processes.request import SearchRequest
from psearch.processes.supervisor import Supervisor
from psearch.processes.task_processes import TaskProcesses
from psearch.processes.time_manager import GameClock, time_manager
from psearch.processes.watch import Watch
from psearch.results import Info, Limits, PsearchError, Result, WorkerDied

KIWIPETE = chess.Board("r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1")
SLACK_S = 0.5
"""Seconds that a loaded machine may add to any time here; a hang takes longer."""


@contextmanager
def signalled(
    engine: Supervisor, number: signal.Signals, every_s: float, begun: threading.Event, seed: int = 0
) -> Iterator[list[int]]:
    """Send this signal regularly to a random worker from `begun` on; yield the numbers of those that got it."""
    hit: list[int] = []
    over = threading.Event()
    dice = random.Random(seed)

    def send() -> None:
        begun.wait()
        while not over.wait(every_s):
            workers = list(engine.pool.workers)
            if workers:
                worker = dice.choice(workers)
                try:
                    os.kill(worker.pid, number)
                except ProcessLookupError:
                    continue
                hit.append(worker.index)

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield hit
    finally:
        over.set()
        begun.set()
        thread.join()


@pytest.fixture
def freeze(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], None]]:
    """Has a worker wait in the depths of the kernel, as for a disk that is gone: it cannot be killed before it comes
    back, which is at the end of the test."""
    frozen: list[int] = []
    kill = ChildProcess.kill

    def freeze(pid: int) -> None:
        frozen.append(pid)
        os.kill(pid, signal.SIGSTOP)

    monkeypatch.setattr(ChildProcess, "kill", lambda worker: None if worker.pid in frozen else kill(worker))
    monkeypatch.setattr(child, "process_state", lambda pid: "D" if pid in frozen else process_state(pid))
    yield freeze
    for pid in frozen:
        os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("method", ["fork", "forkserver"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGBUS, signal.SIGSTOP])
def test_whatever_happens_to_workers_the_search_keeps_its_time_and_its_depth(
    method: str, number: signal.Signals
) -> None:
    infos: list[Info] = []
    with Supervisor(4, 16, start_method=method) as engine:
        late = []
        for attempt in range(3):
            infos.clear()
            begun = threading.Event()

            def take(info: Info, begun: threading.Event = begun) -> None:
                infos.append(info)
                if info.depth >= 4:
                    begun.set()

            with signalled(engine, number, 0.11, begun, attempt) as hit:
                start = time.monotonic()
                limits = Limits(movetime_ms=600)
                options = SearchOptions(split_depth=1)  # many locks
                result = engine.search(SearchRequest(KIWIPETE, limits, options, on_info=take))
                late.append(time.monotonic() - start - 0.6)
            assert hit
            depths = [info.depth for info in infos if not info.is_live and info.bound == "exact"]
            assert depths == list(range(1, len(depths) + 1)) and depths[-1] >= 4
            assert result.bestmove == result.info.pv[0] == infos[-1].pv[0]
            assert len(result.info.pv) >= 2
        assert usual(late) < SLACK_S, late
        result = engine.search(SearchRequest(KIWIPETE, Limits(depth=6)))
        assert result.info.depth == 6 and len(engine.pool.workers) == 4
        assert leftovers(engine.arena) == []


def test_the_table_and_the_histories_survive() -> None:
    with Supervisor(2, 16) as engine:
        engine.search(SearchRequest(KIWIPETE, Limits(depth=9)))
        entries = int((engine.arena.tt != 0).sum())
        histories = engine.arena.header["learning"]["quiet"].copy()
        os.kill(engine.pool.workers[0].pid, signal.SIGKILL)
        wait_for_ends([engine.pool.workers[0].pid])
        assert engine.restore() == ["worker 0 was killed by signal 9; it has been replaced"]
        assert int((engine.arena.tt != 0).sum()) == entries > 1000
        assert (engine.arena.header["learning"]["quiet"] == histories).all() and histories.any()
        assert engine.restore() == []


@pytest.mark.parametrize("victims", [1, 2])
def test_a_halted_worker_holds_up_neither_this_answer_nor_the_next(victims: int) -> None:
    with Supervisor(2, 16) as engine:
        late: dict[int, list[float]] = {200: [], 100: []}
        for _ in range(3):
            halted = [worker.pid for worker in engine.pool.workers[:victims]]

            def halt(info: Info, pids: list[int] = halted) -> None:
                while info.depth >= 3 and pids:
                    os.kill(pids.pop(), signal.SIGSTOP)

            notes: list[str] = []
            for milliseconds, times in late.items():
                start = time.monotonic()
                result = engine.search(
                    SearchRequest(KIWIPETE, Limits(movetime_ms=milliseconds), on_info=halt, on_note=notes.append)
                )
                times.append(time.monotonic() - start - milliseconds / 1000)
                assert result.bestmove == result.info.pv[0] and result.info.depth >= 3
            notes += engine.restore()
            assert any("did not answer" in note for note in notes)
        assert all(usual(times) < SLACK_S for times in late.values()), late


def test_a_worker_that_cannot_be_killed_is_waited_for_once(freeze: Callable[[int], None]) -> None:
    with Supervisor(2, 16) as engine:
        freeze(engine.pool.workers[0].pid)
        engine.search(SearchRequest(KIWIPETE, Limits(movetime_ms=100)))
        assert engine.restore() == ["worker 0 did not answer; it has been replaced"]
        assert least(lambda: seconds_of(engine.restore), 0.1) < 0.1
        assert engine.restore() == []


def test_a_worker_that_is_late_is_left_to_the_next_search_by_who_cannot_wait(freeze: Callable[[int], None]) -> None:
    with Supervisor(2, 16) as engine:
        freeze(engine.pool.workers[0].pid)
        engine.search(SearchRequest(KIWIPETE, Limits(movetime_ms=100)))
        workers = engine.pool.workers
        assert engine.restore(may_wait=lambda: False) == [] and engine.pool.workers is workers
        result = engine.search(SearchRequest(KIWIPETE, Limits(depth=6)))
        assert result.notes == ["worker 0 did not answer; it has been replaced"] and result.info.depth == 6


def test_a_search_without_a_clock_goes_on_when_a_worker_is_halted() -> None:
    with Supervisor(2, 16) as engine:
        os.kill(engine.pool.workers[0].pid, signal.SIGSTOP)
        start = time.monotonic()
        result = engine.search(SearchRequest(KIWIPETE, Limits(depth=8)))
        assert result.info.depth == 8 and result.notes == ["worker 0 did not answer; new workers continue"]
        assert time.monotonic() - start < 10


def test_when_nobody_has_found_a_move_in_time_this_process_does() -> None:
    """Never a move that is made up: `a1b1` comes first of the legal ones."""
    only = [chess.Move.from_uci("a1b1"), chess.Move.from_uci("e2a6")]
    with Supervisor(2, 16) as engine:

        def seconds() -> float:
            engine.restore()
            for worker in engine.pool.workers:
                os.kill(worker.pid, signal.SIGSTOP)
            start = time.monotonic()
            result = engine.search(SearchRequest(KIWIPETE, Limits(movetime_ms=5), only=only))
            taken = time.monotonic() - start
            assert result.bestmove == only[1] and result.info.depth >= 1 and result.info.pv[0] == only[1]
            return taken

        assert least(seconds, SLACK_S) < SLACK_S
        control = SearchControl()
        control.stop()
        for worker in engine.pool.workers:
            os.kill(worker.pid, signal.SIGSTOP)
        assert engine.search(SearchRequest(KIWIPETE, Limits(), only=only, control=control)).bestmove == only[1]


@pytest.mark.parametrize("method", ["fork", "forkserver"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
@pytest.mark.parametrize(("threads", "victims"), [(1, 1), (2, 2), (2, 3), (1, 100)])
def test_workers_that_are_lost_while_they_start_are_replaced(
    method: str, number: signal.Signals, threads: int, victims: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until then there is no worker, and this process searches alone."""
    hit: list[int] = []
    init = ChildProcess.__init__

    def born(worker: ChildProcess, index: int, pid: int, pipe: Connection, server: ForkServer | None = None) -> None:
        init(worker, index, pid, pipe, server)
        if len(hit) < victims and (server is None) == (method == "fork"):  # not the fork server
            hit.append(pid)
            os.kill(pid, number)

    def take_table(arena: Arena, index: int) -> None:  # nobody is ready sooner than it is hit
        time.sleep(60.0 if len(hit) < victims else 0.05)  # as known when the process was forked

    monkeypatch.setattr(ChildProcess, "__init__", born)
    monkeypatch.setattr(Arena, "take_table", take_table)
    start = time.monotonic()
    with Supervisor(threads, 1, start_method=method) as engine:
        assert hit and time.monotonic() - start < 5 * 0.6 + 2
        assert engine.pool.are_processes == (victims < 100) or method == "forkserver"  # some are ready sooner
        victims = 0
        assert engine.search(SearchRequest(KIWIPETE, Limits(depth=6))).info.depth == 6
        assert len(engine.pool.workers) == threads
    wait_for_ends(hit)


def test_a_worker_that_ends_by_itself_at_the_start_is_not_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its kernels crash, and would in this process as well."""
    starts: list[int] = []
    init = ChildProcess.__init__

    def born(worker: ChildProcess, index: int, pid: int, pipe: Connection, server: ForkServer | None = None) -> None:
        init(worker, index, pid, pipe, server)
        starts.append(pid)

    monkeypatch.setattr(ChildProcess, "__init__", born)
    monkeypatch.setattr(Arena, "take_table", lambda arena, index: os.kill(os.getpid(), signal.SIGSEGV))
    with pytest.raises(WorkerDied, match="worker 0 was killed by signal 11"):
        Supervisor(1, 1, start_method="fork")
    assert len(starts) == 1


def test_a_death_for_want_of_memory_is_told_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may happen at the start, where less can be asked for, and later on."""
    kills = iter(range(1000))
    monkeypatch.setattr(child, "oom_kills", lambda: next(kills))
    short = "worker 0 was killed by the system, which is short of memory"
    with Supervisor(1, 1, start_method="fork") as engine:
        os.kill(engine.pool.workers[0].pid, signal.SIGTERM)  # they ignore it
        os.kill(engine.pool.workers[0].pid, signal.SIGKILL)
        wait_for_ends([engine.pool.workers[0].pid])
        assert engine.restore() == [f"{short}; it has been replaced"]
    monkeypatch.setattr(Arena, "take_table", lambda arena, index: os.kill(os.getpid(), signal.SIGKILL))
    with pytest.raises(WorkerDied, match=f"not enough memory for a hash of 1 MB and 1 threads: {short}"):
        Supervisor(1, 1, start_method="fork")


def test_the_answer_of_a_small_search_has_the_time_and_the_nodes_of_both(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lines that are shown, and the result, from all that stops a search."""
    infos: list[Info] = []
    with Supervisor(2, 16) as engine:
        for limits in (Limits(movetime_ms=300), Limits(), Limits(depth=1)):
            infos.clear()
            for worker in engine.pool.workers:
                os.kill(worker.pid, signal.SIGSTOP)
            control = SearchControl()
            request = SearchRequest(KIWIPETE, limits, on_info=infos.append, control=control)
            monkeypatch.setattr(patience, "SEARCH", replace(patience.SEARCH, halted_looks=1000))
            setup = Watch._begin
            stop = None if limits.movetime_ms is not None else threading.Timer(0.3, control.stop)

            def begin(
                watch: Watch, setup: Callable[[Watch], None] = setup, stop: threading.Timer | None = stop
            ) -> None:
                setup(watch)
                if watch.pool.are_processes:  # what they had done before
                    watch.pool.arena.worker["nodes"][:] = 1_000_000
                    if stop is not None:
                        stop.start()

            with monkeypatch.context() as patch:
                patch.setattr(Watch, "_begin", begin)
                result = engine.search(request)
            assert result.interrupted == (limits.movetime_ms is None)
            for info in (result.info, *infos):
                assert info.nodes > 2_000_000 or info.depth == 0, info
                assert info.time_s >= 0.3 or info.depth == 0, info
            assert result.info.depth >= 1 and [one.nodes >= 1_000_000 for one in result.info.workers] == [True, True]
            engine.restore()


def test_a_nearly_empty_clock_gets_the_move_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    with Supervisor(2, 16) as engine:
        known = engine.search(SearchRequest(KIWIPETE, Limits(depth=8))).bestmove
        # this process searches nothing
        monkeypatch.setattr(WorkerPool, "_search_here", lambda pool, timeout_s: time.sleep(min(timeout_s, 0.002)))
        others = [move for move in KIWIPETE.legal_moves if move != known]

        def answer(time_s: float, only: list[chess.Move] | None = None) -> Result:
            control = SearchControl(time_manager(GameClock(time_s), None, 20))
            return engine.search(SearchRequest(KIWIPETE, Limits(), control=control, only=only))

        for time_s in (-1.0, 0.0, 0.001, 0.01, 0.05):
            assert answer(time_s).bestmove == known
        assert answer(0.01, others).bestmove in others


def test_late_workers_get_a_share_of_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    settle = WorkerPool.settle

    def spied(ours: WorkerPool, patience_s: float) -> str | None:
        waits.append(patience_s)
        return settle(ours, patience_s)

    monkeypatch.setattr(WorkerPool, "settle", spied)
    with Supervisor(1, 1) as engine:
        for time_s in (0.0, 0.04, 0.08, 0.4, 1.0, 0.0):
            control = SearchControl(time_manager(GameClock(time_s), None, 20))
            engine.search(SearchRequest(KIWIPETE, Limits(), control=control))
        assert waits == pytest.approx([0.00025, 0.005, 0.01, 0.05, 0.1, 0.00025])


def test_a_move_at_once_wakes_no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them are left for the search that follows."""
    sent: list[object] = []
    with Supervisor(4, 16) as engine:
        send = Children.send
        monkeypatch.setattr(Children, "send", lambda all, one, text: (sent.append(text), send(all, one, text)))
        for _ in range(3):
            control = SearchControl(time_manager(GameClock(0.2), None, 20))
            result = engine.search(SearchRequest(KIWIPETE, Limits(), control=control))
            assert result.info.depth >= 1 and result.notes == [] and sent == []
            assert leftovers(engine.arena) == []
            assert engine.search(SearchRequest(KIWIPETE, Limits(depth=7))).info.depth == 7
            assert len(sent) == 4
            sent.clear()


def test_after_a_loss_short_searches_are_not_spent_on_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A move takes some milliseconds on a nearly empty clock, a new arena more than that."""
    renewed: list[int] = []
    renew = Arena.renew
    monkeypatch.setattr(Arena, "renew", lambda *arguments: (renewed.append(1), renew(*arguments))[1])
    with Supervisor(2, 16) as engine:
        engine.pool.workers[0].kill()
        engine.pool.workers[0].join(60)
        for hard_s in (0.001, 0.005, 0.02, 0.001):
            engine.search(SearchRequest(KIWIPETE, Limits(movetime_ms=1000 * hard_s)))
            assert len(renewed) == 1 and not engine.pool.are_processes
        engine.search(SearchRequest(KIWIPETE, Limits(movetime_ms=2000)))
        assert len(renewed) == 2 and engine.pool.are_processes


def test_where_no_process_can_be_had_this_one_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> None:
        raise OSError(11, "Resource temporarily unavailable")

    with Supervisor(2, 16, start_method="fork") as engine:
        notes: list[str] = []
        with monkeypatch.context() as patch:
            patch.setattr("psearch.processes.pool.launch", refuse)
            with When(engine.pool.workers[1].kill) as killer:
                limits = Limits(movetime_ms=800)
                result = engine.search(SearchRequest(KIWIPETE, limits, on_info=killer.now, on_note=notes.append))
            assert (
                notes
                == result.notes
                == [
                    "worker 1 was killed by signal 9; this process continues alone: "
                    "cannot start 2 worker processes: Resource temporarily unavailable "
                    "(see ulimit -u, or pids.max of the control group)"
                ]
            )
            assert engine.pool.workers == [] and result.info.depth >= 5
            again = engine.search(SearchRequest(KIWIPETE, Limits(depth=6)))
            assert again.info.depth == 6
            assert again.notes == ["this process searches alone: " + result.notes[0].split("alone: ")[1]]
        assert engine.search(SearchRequest(KIWIPETE, Limits(depth=6))).notes == []
        assert len(engine.pool.workers) == 2


@pytest.mark.parametrize("passes", [True, False])
def test_a_shortage_of_memory_is_waited_for(monkeypatch: pytest.MonkeyPatch, passes: bool) -> None:
    """A control group may be full when a worker is killed: its memory is not free at once."""
    asked = 0

    def available() -> int:
        nonlocal asked
        asked += 1
        return 1 << 40 if passes and asked > 6 else -1

    monkeypatch.setattr(patience, "SHORTAGE_S", 1000.0 if passes else 0.1)
    with Supervisor(2, 16, start_method="fork") as engine:
        monkeypatch.setattr("psearch.arena.arena.available_memory", available)
        killed = [engine.pool.workers[1].pid]

        def kill(info: Info) -> None:
            while killed:
                os.kill(killed.pop(), signal.SIGKILL)

        result = engine.search(SearchRequest(KIWIPETE, Limits(depth=16 if passes else 60), on_info=kill))
        assert result.info.pv
        (note,) = result.notes
        if passes:
            assert note == "worker 1 was killed by signal 9; new workers continue"
            assert asked > 6 and result.info.depth == 16
            asked = 0
            os.kill(engine.pool.workers[1].pid, signal.SIGKILL)
            wait_for_ends([engine.pool.workers[1].pid])
            assert engine.restore() == ["worker 1 was killed by signal 9; it has been replaced"]
        else:
            assert note == (
                "worker 1 was killed by signal 9; the search was stopped, because no others can be started: "
                "not enough memory: 1 worker needs about 1 MB, 0 MB are available"
            )


def test_inline_is_the_search_of_one_worker() -> None:
    with Supervisor(1, 16) as one, Supervisor(4, 16, start_method="inline") as inline:
        request = SearchRequest(KIWIPETE, Limits(depth=7))
        assert inline.search(request).info.nodes == one.search(request).info.nodes
        timed = SearchRequest(KIWIPETE, Limits(movetime_ms=100))
        assert 0.09 < least(lambda: seconds_of(lambda: inline.search(timed)), 0.1 + SLACK_S) < 0.1 + SLACK_S


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_perft_counts_again_what_a_lost_worker_had(number: signal.Signals, monkeypatch: pytest.MonkeyPatch) -> None:
    lost: list[int] = []
    give = TaskProcesses.give

    def hit(processes: TaskProcesses, process: int, task: int, work: object, limit_s: float | None) -> None:
        give(processes, process, task, work, limit_s)
        if process == 1 and not lost:
            lost.append(processes._processes[process].child.pid)
            os.kill(lost[0], number)

    monkeypatch.setattr(TaskProcesses, "give", hit)
    assert sum(count_leaves(KIWIPETE, 4, 2)[0].values()) == 4_085_603
    wait_for_ends(lost)


def test_where_no_process_can_be_had_this_one_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(index: int, target: str) -> ChildProcess:
        raise PsearchError("no room")

    counts = count_leaves(KIWIPETE, 3, 2)[0]
    monkeypatch.setattr("psearch.processes.task_processes.launch_process", refuse)
    assert count_leaves(KIWIPETE, 3, 2)[0] == counts and sum(counts.values()) == 97_862


def test_a_count_is_stopped() -> None:
    with pytest.raises(PsearchError, match="the count was stopped"):
        count_leaves(KIWIPETE, 12, 2, lambda: True)


def test_a_stop_that_comes_after_the_end_touches_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """One thread closes, and stops the search of another, which has seen that and gives the memory back."""
    touched: list[int] = []
    monkeypatch.setattr(pool, "request_stop", touched.append)
    some = WorkerPool(1, 1, pool.INLINE)
    some.stop()
    assert len(touched) == 1
    some.close()
    some.stop()
    assert len(touched) == 1


def test_closing_while_a_callback_does_not_return_frees_nothing_under_its_feet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "CLOSE_S", 0.1)
    inside, go_on = threading.Event(), threading.Event()
    ended: list[object] = []

    def hold(info: Info) -> None:
        inside.set()
        go_on.wait(120)

    def search() -> None:
        try:
            ended.append(engine.search(SearchRequest(chess.Board(), Limits(), on_info=hold)))
        except PsearchError as error:
            ended.append(str(error))

    engine = Supervisor(2, 16)
    pids = [worker.pid for worker in engine.pool.workers]
    thread = threading.Thread(target=search)
    thread.start()
    assert inside.wait(60)
    engine.close()
    wait_for_ends(pids)
    go_on.set()
    thread.join(60)
    assert len(ended) == 1 and not thread.is_alive()
    assert not hasattr(engine.arena, "header"), "who leaves the search gives the memory back"
    wait_until(lambda: not any(os.path.exists(f"/proc/{pid}/exe") for pid in pids))
