"""Hands that are processes of this machine: what kills, halts or refuses them costs no position."""

from __future__ import annotations

import itertools
import os
import random
import select
import signal
import threading
import time
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

import fake_workers
import pytest
from timing import wait_until

from psearch.batch.positions.position_pool import PositionPool, WorkerSettings, make_pool, rounds
from psearch.batch.positions.task import Outcome, Part, Pause, Task, TaskList
from psearch.batch.positions.task_queue import Done, Event
from psearch.processes.tasks import ProcessJoined, ProcessLost
from psearch.results import Limits, PsearchError, WorkerDied

SETTINGS = WorkerSettings(hash_mb=1)


def lists(count: int, nodes: int = 2_000) -> Iterator[TaskList]:
    for number in range(count):
        yield [Task(number, "startpos", limits=Limits(nodes=nodes))]


def outcomes(pool: PositionPool, lists: Iterable[TaskList], assist: int = 0) -> Iterator[Outcome]:
    return itertools.chain.from_iterable(rounds(pool, lists, assist=assist))


def is_there(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_every_position_is_searched_and_the_workers_are_gone_afterwards() -> None:
    with make_pool(2, SETTINGS) as pool:
        pids = pool.processes.pids()
        found = list(outcomes(pool, lists(60)))
    assert sorted(one.id for one in found) == list(range(60))
    assert len({(one.answer.nodes, one.answer.best) for one in found}) == 1
    assert {one.worker for one in found} <= set(map(str, pids))
    wait_until(lambda: not any(map(is_there, pids)))


def test_more_input_is_heard_of_at_once() -> None:
    reader, writer = os.pipe()

    def chains_of_input() -> Iterator[TaskList | Pause]:
        for _ in range(18):
            while not select.select([reader], [], [], 0)[0]:
                yield Pause.INPUT
            assert os.read(reader, 1) == b"."
            yield from lists(1)

    with make_pool(2, SETTINGS) as pool:
        os.write(writer, b".")
        found: list[float] = []
        for some in rounds(pool, chains_of_input(), awaited=reader):
            found += [time.monotonic()] * len(some)
            if some and len(found) < 18:
                os.write(writer, b".")
        assert len(found) == 18
        # without being told it looks five times a second
        assert min(found[last] - found[last - 5] for last in (5, 11, 17)) < 0.8
        assert pool.wait(0.0, awaited=writer) == []
        began = time.monotonic()
        os.write(writer, b".")
        pool.wait(50.0, awaited=reader)
        assert time.monotonic() - began < 20.0
        with open(__file__, "rb") as file:  # which no poll takes
            pool.wait(50.0, awaited=file.fileno())
        assert time.monotonic() - began < 20.0
    os.close(reader)
    os.close(writer)


def test_workers_that_are_killed_again_and_again_cost_nothing() -> None:
    chance = random.Random(5)
    with make_pool(2, SETTINGS) as pool:

        def enough() -> Iterator[TaskList]:
            endless = lists(1_000_000, 8_000)
            yield from itertools.islice(endless, 200)
            while pool.lost < 10:
                yield next(endless)

        found = []
        killed = last = 0
        for one in outcomes(pool, enough()):
            found.append(one)
            # the one before has been missed, and what it was at is done: else a quick machine kills it thrice
            if killed == pool.lost < 10 and len(found) >= last + 40:
                os.kill(chance.choice([pid for pid in pool.processes.pids() if is_there(pid)]), signal.SIGKILL)
                killed, last = killed + 1, len(found)
        assert pool.lost == 10
    assert sorted(one.id for one in found) == list(range(len(found)))
    assert all(one.error is None for one in found)
    assert len({(one.answer.nodes, one.answer.best) for one in found}) == 1


def test_a_worker_that_is_stopped_is_replaced() -> None:
    with make_pool(2, SETTINGS) as pool:
        stopped = pool.processes.pids()[0]
        found = []
        for one in outcomes(pool, lists(300, 20_000)):
            found.append(one)
            if len(found) == 20:
                os.kill(stopped, signal.SIGSTOP)
        assert pool.lost == 1
        assert stopped not in pool.processes.pids()
    assert sorted(one.id for one in found) == list(range(300))


def test_a_worker_that_raises_is_replaced() -> None:
    broken = [Part(0, True, [(0, Task(0, 5, limits=Limits(depth=1)))])]  # type: ignore[arg-type]
    with make_pool(1, SETTINGS) as pool:
        events: list[Event] = []
        while len(events) < 3:
            events += pool.wait(10.0)
            if len(events) == 1:
                pool.send(0, broken)
        assert [type(event) for event in events] == [ProcessJoined, ProcessLost, ProcessJoined]
        assert "it raised " in events[1].reason and "Error" in events[1].reason  # type: ignore[union-attr]


def test_the_workers_end_with_a_program_that_is_killed() -> None:
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        pool = make_pool(2, SETTINGS)
        flow = outcomes(pool, lists(10_000, 100_000))
        next(flow)
        os.write(writable, " ".join(map(str, pool.processes.pids())).encode())
        for _ in flow:
            pass
        os._exit(0)
    pids = [int(word) for word in os.read(readable, 100).split()]
    assert len(pids) == 2
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    wait_until(lambda: not any(map(is_there, pids)))
    os.close(readable)
    os.close(writable)


def test_from_a_program_with_threads() -> None:
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    try:
        with make_pool(2, SETTINGS) as pool:
            assert sorted(one.id for one in outcomes(pool, lists(20))) == list(range(20))
            os.kill(pool.processes.pids()[0], signal.SIGKILL)
            assert sorted(one.id for one in outcomes_again(pool, 20)) == list(range(20))
    finally:
        done.set()
        thread.join()


def outcomes_again(pool: PositionPool, count: int) -> list:
    """Answer with a second queue, which has not seen the workers start."""
    found: list = []
    while not pool.lost:
        pool.wait(0.1)
    workers = sorted(pool.processes._processes)
    for place, worker in enumerate(workers):
        numbers = range(place, count, len(workers))
        tasks = [(number, Task(number, "startpos", limits=Limits(nodes=500))) for number in numbers]
        pool.send(worker, [Part(0, True, tasks)])
    while len(found) < count:
        for event in pool.wait(1.0):
            if isinstance(event, Done):
                found += event.outcomes
            assert not isinstance(event, ProcessLost)
    return found


def test_those_that_end_before_they_are_ready_are_not_started_for_ever() -> None:
    pool = make_pool(2, SETTINGS, worker=fake_workers.Stillborn)
    with pytest.raises(WorkerDied, match="end before they are ready"), pool:
        list(outcomes(pool, lists(3)))


def test_one_that_cannot_begin_for_a_moment_costs_nothing(tmp_path: Path) -> None:
    mood = tmp_path / "mood"
    notes: list[str] = []
    with make_pool(1, SETTINGS, worker=partial(fake_workers.Moody, mood), on_note=notes.append) as pool:
        found = []
        for one in outcomes(pool, lists(40)):
            found.append(one.id)
            if len(found) == 5:
                mood.touch()
                os.kill(pool.processes.pids()[0], signal.SIGKILL)
    assert sorted(found) == list(range(40))
    assert len(notes) == 2 and notes[1].endswith("it raised MemoryError('for a moment')")


def test_too_much_memory_is_refused_at_once() -> None:
    with pytest.raises(PsearchError, match="not enough memory: 2 searches with a hash of 8000000 MB"):
        make_pool(2, WorkerSettings(hash_mb=8_000_000))


def test_what_a_worker_refuses_is_told() -> None:
    with (
        pytest.raises(PsearchError, match="cannot read endgame tables"),
        make_pool(1, WorkerSettings(hash_mb=1, syzygy="/nowhere")) as pool,
    ):
        list(outcomes(pool, lists(1)))


def test_messages_longer_than_a_pipe_holds_go_both_ways() -> None:
    """Neither side waits for the other to read."""
    many = [
        (number, Task(number, "startpos", ("e2e4", "e7e5") * 1, limits=Limits(nodes=10))) for number in range(6_000)
    ]
    with make_pool(1, SETTINGS, worker=fake_workers.Empty) as pool:
        joined: list[ProcessJoined] = []
        while not joined:
            joined = [event for event in pool.wait(10.0) if isinstance(event, ProcessJoined)]
        pool.send(joined[0].process, [Part(0, True, many)])
        pool.send(joined[0].process, [Part(1, True, [(number + 6_000, task) for number, task in many])])
        time.sleep(0.5)
        found = 0
        while found < 12_000:
            found += sum(len(event.outcomes) for event in pool.wait(5.0) if isinstance(event, Done))


def test_a_game_moves_on_to_more_threads_when_workers_have_nothing_to_do() -> None:
    positions = [[Task("long", "startpos", limits=Limits(movetime_ms=3_000))]]
    with make_pool(2, SETTINGS) as pool:
        (one,) = outcomes(pool, positions, assist=2)
    assert one.answer.threads == 2
    assert one.answer.time_s < 4.0
