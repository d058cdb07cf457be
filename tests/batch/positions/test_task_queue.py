"""The queue of tasks with simulated workers: whatever they do, every task has one outcome."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import pytest
from chess.engine import Cp
from hypothesis import given, settings
from hypothesis import strategies as st

from psearch.batch.positions.position_pool import rounds
from psearch.batch.positions.task import Answer, Batch, Line, Outcome, Pause, Task, TaskList
from psearch.batch.positions.task_queue import MOST_TRIES, Done, TaskQueue
from psearch.processes.tasks import ProcessJoined, ProcessLost
from psearch.results import Limits

FOUND = Answer("e2e4", [Line(Cp(0), "exact", 1, 1, ["e2e4"])], 1, 0.0, 0, 0, [])


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def task(name: str | int) -> Task:
    return Task(name, "startpos", limits=Limits(nodes=1))


def size_of(batch: Batch) -> int:
    return sum(len(part.tasks) for part in batch)


def lists_of(sizes: list[int]) -> list[TaskList]:
    return [[task(f"{tasks}.{place}") for place in range(size)] for tasks, size in enumerate(sizes)]


def outcome(number: int, task: Task) -> Outcome:
    return Outcome(number, task.id, FOUND)


class FakePool:
    """Workers that search in virtual time, and are lost, stall and come as `chance` has it."""

    threads = 1

    def __init__(self, workers: int, chance: random.Random, clock: Clock, poison: frozenset[str] = frozenset()) -> None:
        self.chance, self.clock, self.poison = chance, clock, poison
        self.workers: dict[int, list[tuple[int, Task, int, bool]]] = {}
        self.events: list[ProcessJoined | ProcessLost | Done] = []
        self.late: list[Done] = []
        self.next = 0
        self.deaths: Counter[str | int] = Counter()
        self.batches: list[tuple[int, int]] = []
        self.histories: dict[int, list[tuple[int, bool, str | int]]] = {}
        self.assisted: list[tuple[int, int]] = []
        self.loss = 0.0
        self.cost = lambda task: 1.0
        for _ in range(workers):
            self.join()

    def join(self) -> None:
        self.workers[self.next] = []
        self.histories[self.next] = []
        self.events.append(ProcessJoined(self.next, "", f"worker {self.next}"))
        self.next += 1

    def send(self, worker: int, batch: Batch) -> None:
        self.batches.append((worker, size_of(batch)))
        if worker not in self.workers:
            return
        assert not self.workers[worker]
        for part in batch:
            for place, (number, one) in enumerate(part.tasks):
                self.workers[worker].append((number, one, part.list_number, part.begins and place == 0))

    def assist(self, worker: int, threads: int) -> None:
        self.assisted.append((worker, threads))

    def lose(self, worker: int) -> None:
        work = self.workers.pop(worker)
        done = []
        if work and self.chance.random() < 0.3:  # its last answer comes when it is taken for lost
            done = [outcome(work[0][0], work[0][1])]
            self.late.append(Done(worker, done))
        self.events.append(ProcessLost(worker, "it was lost"))
        self.join()

    def wait(self, timeout_s: float, awaited: int | None = None) -> list[ProcessJoined | ProcessLost | Done]:
        events, self.events = self.events, []
        if events:
            return events
        if self.late and self.chance.random() < 0.5:
            return [self.late.pop()]
        busy = [worker for worker, work in self.workers.items() if work]
        if not busy:
            self.clock.now += 0.2
            return []
        worker = self.chance.choice(busy)
        work = self.workers[worker]
        if work[0][1].id in self.poison:
            self.deaths[work[0][1].id] += 1
            self.workers.pop(worker)
            self.join()
            return [ProcessLost(worker, "it exited with code 1")]
        if self.chance.random() < self.loss:
            self.lose(worker)
            return []
        count = self.chance.randint(1, len(work))
        done = []
        for number, one, tasks, begins in work[:count]:
            if one.id in self.poison:
                break
            self.clock.now += self.cost(one) / max(1, len(busy))
            self.histories[worker].append((tasks, begins, one.id))
            done.append(outcome(number, one))
        del work[: len(done)]
        return [Done(worker, done)]

    def close(self) -> None:
        self.workers.clear()


def run(pool: FakePool, queue: TaskQueue, steps: int = 200_000) -> list[Outcome]:
    results: list[Outcome] = []
    for _ in range(steps):
        for worker, batch in queue.batches():
            pool.send(worker, batch)
        for worker, threads in queue.assists():
            pool.assist(worker, threads)
        results += queue.results()
        if queue.is_over:
            return results
        for event in pool.wait(0.1):
            queue.take(event)
    raise AssertionError(f"not over after {steps} steps: {len(results)} outcomes")


def check_histories(pool: FakePool) -> None:
    """Every tasks was searched in its order at each worker, behind its own past or from a new beginning."""
    for history in pool.histories.values():
        last: tuple[int, int] | None = None
        for tasks, begins, name in history:
            place = int(str(name).partition(".")[2])
            if not begins:
                assert last[0] == tasks
                assert place > last[1]
            last = (tasks, place)


@settings(max_examples=200, deadline=None)
@given(
    sizes=st.lists(st.integers(0, 7), max_size=40),
    workers=st.integers(1, 9),
    seed=st.integers(0, 2**32),
    loss=st.sampled_from([0.0, 0.02, 0.2]),
    cost=st.sampled_from([0.001, 0.1, 3.0]),
)
def test_whatever_workers_do_every_task_has_one_outcome(
    sizes: list[int], workers: int, seed: int, loss: float, cost: float
) -> None:
    clock = Clock()
    pool = FakePool(workers, random.Random(seed), clock)
    pool.loss = loss
    pool.cost = lambda one: cost
    results = run(pool, TaskQueue(lists_of(sizes), clock=clock))
    expected = [f"{tasks}.{place}" for tasks, size in enumerate(sizes) for place in range(size)]
    assert sorted(str(one.id) for one in results) == sorted(expected)
    assert sorted(one.number for one in results) == list(range(len(expected)))
    if loss == 0.0:
        assert all(one.error is None for one in results)
        check_histories(pool)


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 6), min_size=1, max_size=30),
    workers=st.integers(1, 6),
    seed=st.integers(0, 2**32),
    data=st.data(),
)
def test_a_poisonous_position_is_bad_and_takes_none_with_it(
    sizes: list[int], workers: int, seed: int, data: st.DataObject
) -> None:
    names = [f"{tasks}.{place}" for tasks, size in enumerate(sizes) for place in range(size)]
    poison = frozenset(data.draw(st.lists(st.sampled_from(names), max_size=4)))
    clock = Clock()
    pool = FakePool(workers, random.Random(seed), clock, poison)
    pool.cost = lambda one: 0.01
    results = run(pool, TaskQueue(lists_of(sizes), clock=clock))
    assert sorted(str(one.id) for one in results) == sorted(names)
    assert {one.id for one in results if one.error is not None} == poison
    # one less where another of its batch is what killed the worker first
    assert all(MOST_TRIES - 1 <= pool.deaths[name] <= MOST_TRIES for name in poison)
    for one in results:
        assert one.error is None or "lost 3 times, the last time because it exited with code 1" in one.error


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), workers=st.integers(1, 6))
def test_the_innocent_beside_a_poisonous_position_are_found(seed: int, workers: int) -> None:
    clock = Clock()
    pool = FakePool(workers, random.Random(seed), clock, frozenset({"100.0"}))
    pool.cost = lambda one: 0.001
    results = run(pool, TaskQueue(lists_of([1] * 300), clock=clock))
    assert [one.id for one in results if one.error is not None] == ["100.0"]
    assert len(results) == 300


def lazily(count: int, read: list[int]) -> Iterator[TaskList]:
    for number in range(count):
        read[0] = number + 1
        yield [task(number)]


def test_a_long_iterable_is_read_as_it_is_needed() -> None:
    clock = Clock()
    pool = FakePool(4, random.Random(1), clock)
    pool.cost = lambda one: 0.002
    read = [0]
    queue = TaskQueue(lazily(50_000, read), clock=clock)
    given_out = 0
    ahead = 0
    while not queue.is_over:
        for worker, batch in queue.batches():
            pool.send(worker, batch)
        given_out += len(queue.results())
        ahead = max(ahead, read[0] - given_out)
        for event in pool.wait(0.1):
            queue.take(event)
    assert given_out == 50_000
    assert ahead < 5 * 4 * 256


def test_batches_take_about_a_second_and_are_small_at_the_end() -> None:
    clock = Clock()
    pool = FakePool(2, random.Random(2), clock)
    pool.cost = lambda one: 0.02
    run(pool, TaskQueue(lazily(2_000, [0]), clock=clock))
    sizes = [size for _, size in pool.batches]
    assert sizes[:2] == [1, 1]
    assert 25 <= max(sizes) <= 120
    assert max(sizes[-4:]) <= 8


def test_a_worker_has_one_batch_at_a_time() -> None:
    clock = Clock()
    queue = TaskQueue(lazily(3, [0]), clock=clock)
    queue.take(ProcessJoined(0, "", "a"))
    queue.take(ProcessJoined(1, "", "b"))
    assert [(worker, size_of(batch)) for worker, batch in queue.batches()] == [(0, 1), (1, 1)]
    assert queue.batches() == []
    clock.now = 60.0
    queue.take(Done(1, [outcome(1, task(1))]))
    assert [(worker, size_of(batch)) for worker, batch in queue.batches()] == [(1, 1)]


def test_what_a_worker_was_lost_with_goes_one_by_one() -> None:
    clock = Clock()
    queue = TaskQueue(lazily(20, [0]), clock=clock)
    queue.take(ProcessJoined(0, "", "a"))
    ((_, first),) = queue.batches()
    clock.now = 0.1
    queue.take(Done(0, [outcome(number, one) for number, one in first[0].tasks]))
    ((_, second),) = queue.batches()
    assert size_of(second) == 4
    numbers = [number for part in second for number, _ in part.tasks]
    queue.take(Done(0, [outcome(numbers[0], task(numbers[0]))]))
    queue.take(ProcessLost(0, "gone"))
    assert queue.batches() == []
    queue.take(ProcessJoined(1, "", "b"))
    for number in numbers[1:]:
        ((_, again),) = queue.batches()
        assert [(part.begins, [number for number, _ in part.tasks]) for part in again] == [(True, [number])]
        queue.take(Done(1, [outcome(number, task(number))]))
    ((_, behind),) = queue.batches()
    assert size_of(behind) > 1


def test_an_answer_that_comes_twice_counts_once() -> None:
    clock = Clock()
    queue = TaskQueue(lazily(1, [0]), clock=clock)
    queue.take(ProcessJoined(0, "", "a"))
    queue.batches()
    queue.take(ProcessLost(0, "gone"))
    queue.take(ProcessJoined(1, "", "b"))
    assert len(queue.batches()) == 1
    queue.take(Done(0, [outcome(0, task(0))]))
    assert [one.id for one in queue.results()] == [0]
    queue.take(Done(1, [outcome(0, task(0))]))
    assert queue.batches() == []
    assert queue.results() == []
    assert queue.is_over


def test_workers_without_work_help_those_that_have_some() -> None:
    clock = Clock()
    queue = TaskQueue(lazily(3, [0]), assist=8, clock=clock)
    for worker in range(8):
        queue.take(ProcessJoined(worker, "", "worker"))
    assert len(queue.batches()) == 3
    assert queue.assists() == []  # too soon
    clock.now = 1.0
    assert queue.assists() == [(0, 3), (1, 3), (2, 2)]
    assert queue.assists() == []
    queue.take(Done(0, [outcome(0, task(0))]))
    queue.take(Done(1, [outcome(1, task(1))]))
    assert queue.assists() == [(2, 8)]


def test_no_help_while_there_may_be_more_to_read() -> None:
    clock = Clock()
    queue = TaskQueue(lazily(300, [0]), assist=2, clock=clock)
    for worker in range(2):
        queue.take(ProcessJoined(worker, "", "worker"))
    queue.batches()
    clock.now = 1.0
    assert queue.assists() == []


def test_what_the_iterable_raises_goes_through() -> None:
    def broken() -> Iterator[TaskList]:
        yield [task(0)]
        raise ValueError("no more")

    clock = Clock()
    with pytest.raises(ValueError, match="no more"):
        list(rounds(FakePool(1, random.Random(1), clock), broken()))


def test_the_loop_gives_outcomes_as_they_come() -> None:
    found = [one.id for some in rounds(FakePool(3, random.Random(4), Clock()), lazily(500, [0])) for one in some]
    assert sorted(found) == list(range(500))


@settings(max_examples=100, deadline=None)
@given(
    sizes=st.lists(st.one_of(st.integers(0, 5), st.sampled_from(list(Pause))), max_size=60),
    workers=st.integers(1, 5),
    seed=st.integers(0, 2**32),
    loss=st.sampled_from([0.0, 0.1]),
)
def test_pauses_of_the_input_lose_nothing(sizes: list[int | Pause], workers: int, seed: int, loss: float) -> None:
    clock = Clock()
    pool = FakePool(workers, random.Random(seed), clock)
    pool.cost = lambda one: 0.05
    pool.loss = loss
    lists: list[TaskList | Pause] = [
        size if isinstance(size, Pause) else [task(f"{number}.{place}") for place in range(size)]
        for number, size in enumerate(sizes)
    ]
    results = run(pool, TaskQueue(lists, clock=clock))
    expected = [
        f"{number}.{place}" for number, size in enumerate(sizes) if isinstance(size, int) for place in range(size)
    ]
    assert sorted(str(one.id) for one in results) == sorted(expected)


def test_behind_a_pause_nothing_is_read_until_the_next_round() -> None:
    read: list[int] = []

    def lists() -> Iterator[TaskList | Pause]:
        for number in range(3):
            read.append(number)
            yield [task(number)]
            yield Pause.INPUT

    clock = Clock()
    queue = TaskQueue(lists(), assist=4, clock=clock)
    for worker in range(4):
        queue.take(ProcessJoined(worker, "", "worker"))
    for number in range(3):
        assert [size_of(batch) for _, batch in queue.batches()] == [1]
        assert queue.pause is Pause.INPUT
        assert read == list(range(number + 1))
        clock.now += 1.0
        assert queue.assists() == []  # there may be more
    assert queue.batches() == []
    assert queue.pause is None
    assert [threads for _, threads in queue.assists()] == [2]


def test_nothing_to_do() -> None:
    queue = TaskQueue([[], []])
    assert queue.batches() == []
    assert queue.is_over
