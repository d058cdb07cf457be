"""Hands that are processes of this machine: what kills, halts or refuses them costs no position."""

from __future__ import annotations

import itertools
import os
import random
import select
import signal
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import farm_hands
import pytest
from timing import wait_until

from psearch.batch.positions.crew import Crew, Done, Event, make_crew
from psearch.batch.positions.flow import outcomes, rounds
from psearch.batch.positions.hand import HandSettings
from psearch.batch.positions.jobs import Batch, Chain, Pause, Piece, Task
from psearch.processes.tasks.task_messages import ProcessJoined, ProcessLost
from psearch.results import Limits, PsearchError, WorkerDied

SETTINGS = HandSettings(hash_mb=1)


def chains(count: int, nodes: int = 2_000) -> Iterator[Chain]:
    for number in range(count):
        yield Chain([Task(number, "startpos", limits=Limits(nodes=nodes))])


def is_there(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_every_position_is_searched_and_the_hands_are_gone_afterwards() -> None:
    with make_crew(2, SETTINGS) as crew:
        pids = crew.processes.pids()
        found = list(outcomes(crew, chains(60)))
    assert sorted(one.id for one in found) == list(range(60))
    assert len({(one.found.nodes, one.found.best) for one in found}) == 1
    assert {one.hand for one in found} <= set(map(str, pids))
    wait_until(lambda: not any(map(is_there, pids)))


def test_more_input_is_heard_of_at_once() -> None:
    reader, writer = os.pipe()

    def chains_of_input() -> Iterator[Chain | Pause]:
        for _ in range(18):
            while not select.select([reader], [], [], 0)[0]:
                yield Pause.INPUT
            assert os.read(reader, 1) == b"."
            yield from chains(1)

    with make_crew(2, SETTINGS) as crew:
        os.write(writer, b".")
        found: list[float] = []
        for some in rounds(crew, chains_of_input(), awaited=reader):
            found += [time.monotonic()] * len(some)
            if some and len(found) < 18:
                os.write(writer, b".")
        assert len(found) == 18
        # without being told it looks five times a second
        assert min(found[last] - found[last - 5] for last in (5, 11, 17)) < 0.8
        assert crew.wait(0.0, awaited=writer) == []
        began = time.monotonic()
        os.write(writer, b".")
        crew.wait(50.0, awaited=reader)
        assert time.monotonic() - began < 20.0
        with open(__file__, "rb") as file:  # which no poll takes
            crew.wait(50.0, awaited=file.fileno())
        assert time.monotonic() - began < 20.0
    os.close(reader)
    os.close(writer)


def test_hands_that_are_killed_again_and_again_cost_nothing() -> None:
    chance = random.Random(5)
    with make_crew(2, SETTINGS) as crew:

        def enough() -> Iterator[Chain]:
            endless = chains(1_000_000, 8_000)
            yield from itertools.islice(endless, 200)
            while crew.lost < 10:
                yield next(endless)

        found = []
        killed = last = 0
        for one in outcomes(crew, enough()):
            found.append(one)
            # the one before has been missed, and what it was at is done: else a quick machine kills it thrice
            if killed == crew.lost < 10 and len(found) >= last + 40:
                os.kill(chance.choice([pid for pid in crew.processes.pids() if is_there(pid)]), signal.SIGKILL)
                killed, last = killed + 1, len(found)
        assert crew.lost == 10
    assert sorted(one.id for one in found) == list(range(len(found)))
    assert all(one.error is None for one in found)
    assert len({(one.found.nodes, one.found.best) for one in found}) == 1


def test_a_hand_that_is_stopped_is_replaced() -> None:
    with make_crew(2, SETTINGS) as crew:
        stopped = crew.processes.pids()[0]
        found = []
        for one in outcomes(crew, chains(300, 20_000)):
            found.append(one)
            if len(found) == 20:
                os.kill(stopped, signal.SIGSTOP)
        assert crew.lost == 1
        assert stopped not in crew.processes.pids()
    assert sorted(one.id for one in found) == list(range(300))


def test_a_hand_that_raises_is_replaced() -> None:
    broken = Batch([Piece(0, True, [(0, Task(0, 5, limits=Limits(depth=1)))])])  # type: ignore[arg-type]
    with make_crew(1, SETTINGS) as crew:
        events: list[Event] = []
        while len(events) < 3:
            events += crew.wait(10.0)
            if len(events) == 1:
                crew.send(0, broken)
        assert [type(event) for event in events] == [ProcessJoined, ProcessLost, ProcessJoined]
        assert "it raised " in events[1].reason and "Error" in events[1].reason  # type: ignore[union-attr]


def test_the_hands_end_with_a_program_that_is_killed() -> None:
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        crew = make_crew(2, SETTINGS)
        flow = outcomes(crew, chains(10_000, 100_000))
        next(flow)
        os.write(writable, " ".join(map(str, crew.processes.pids())).encode())
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
        with make_crew(2, SETTINGS) as crew:
            assert sorted(one.id for one in outcomes(crew, chains(20))) == list(range(20))
            os.kill(crew.processes.pids()[0], signal.SIGKILL)
            assert sorted(one.id for one in outcomes_again(crew, 20)) == list(range(20))
    finally:
        done.set()
        thread.join()


def outcomes_again(crew: Crew, count: int) -> list:
    """With another dispatcher, which has not seen the hands come."""
    found: list = []
    while not crew.lost:
        crew.wait(0.1)
    hands = sorted(crew.processes._processes)
    for place, hand in enumerate(hands):
        numbers = range(place, count, len(hands))
        tasks = [(number, Task(number, "startpos", limits=Limits(nodes=500))) for number in numbers]
        crew.send(hand, Batch([Piece(0, True, tasks)]))
    while len(found) < count:
        for event in crew.wait(1.0):
            if isinstance(event, Done):
                found += event.outcomes
            assert not isinstance(event, ProcessLost)
    return found


def test_those_that_end_before_they_are_ready_are_not_started_for_ever() -> None:
    crew = make_crew(2, SETTINGS, hand=farm_hands.Stillborn)
    with pytest.raises(WorkerDied, match="end before they are ready"), crew:
        list(outcomes(crew, chains(3)))


def test_one_that_cannot_begin_for_a_moment_costs_nothing(tmp_path: Path) -> None:
    mood = tmp_path / "mood"
    notes: list[str] = []
    with make_crew(1, SETTINGS, hand=partial(farm_hands.Moody, mood), on_note=notes.append) as crew:
        found = []
        for one in outcomes(crew, chains(40)):
            found.append(one.id)
            if len(found) == 5:
                mood.touch()
                os.kill(crew.processes.pids()[0], signal.SIGKILL)
    assert sorted(found) == list(range(40))
    assert len(notes) == 2 and notes[1].endswith("it raised MemoryError('for a moment')")


def test_too_much_memory_is_refused_at_once() -> None:
    with pytest.raises(PsearchError, match="not enough memory: 2 searches with a hash of 8000000 MB"):
        make_crew(2, HandSettings(hash_mb=8_000_000))


def test_what_a_hand_refuses_is_told() -> None:
    with (
        pytest.raises(PsearchError, match="cannot read endgame tables"),
        make_crew(1, HandSettings(hash_mb=1, syzygy="/nowhere")) as crew,
    ):
        list(outcomes(crew, chains(1)))


def test_bound_to_cores_and_nice() -> None:
    core = min(os.sched_getaffinity(0))
    with make_crew(1, SETTINGS, cores=[core], nice=3) as crew:
        next(outcomes(crew, chains(2)))
        (pid,) = crew.processes.pids()
        assert os.sched_getaffinity(pid) == {core}
        assert os.getpriority(os.PRIO_PROCESS, pid) == min(19, os.getpriority(os.PRIO_PROCESS, 0) + 3)


def test_a_core_that_is_not_there() -> None:
    with pytest.raises(PsearchError, match="cannot run on cores 9999"), make_crew(1, SETTINGS, cores=[9999]) as crew:
        list(outcomes(crew, chains(1)))


def test_messages_longer_than_a_pipe_holds_go_both_ways() -> None:
    """Neither side waits for the other to read."""
    many = [
        (number, Task(number, "startpos", ("e2e4", "e7e5") * 1, limits=Limits(nodes=10))) for number in range(6_000)
    ]
    with make_crew(1, SETTINGS, hand=farm_hands.Empty) as crew:
        joined: list[ProcessJoined] = []
        while not joined:
            joined = [event for event in crew.wait(10.0) if isinstance(event, ProcessJoined)]
        crew.send(joined[0].process, Batch([Piece(0, True, many)]))
        crew.send(joined[0].process, Batch([Piece(1, True, [(number + 6_000, task) for number, task in many])]))
        time.sleep(0.5)
        found = 0
        while found < 12_000:
            found += sum(len(event.outcomes) for event in crew.wait(5.0) if isinstance(event, Done))


def test_a_game_moves_on_to_more_threads_when_hands_have_nothing_to_do() -> None:
    positions = [Chain([Task("long", "startpos", limits=Limits(movetime_ms=3_000))])]
    with make_crew(2, SETTINGS) as crew:
        (one,) = outcomes(crew, positions, assist=2)
    assert one.found.threads == 2
    assert one.found.time_s < 4.0
