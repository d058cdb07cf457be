"""Who searches what, on hands that are none: whatever they do, every task has one outcome."""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from psearch.batch.positions.crew import MOST_IN_FLIGHT, Done
from psearch.batch.positions.dispatch import MOST_TRIES, Dispatcher
from psearch.batch.positions.flow import outcomes
from psearch.batch.positions.jobs import Batch, Chain, Found, Line, Outcome, Pause, Task
from psearch.processes.tasks.task_messages import ProcessJoined, ProcessLost
from psearch.results import Limits

FOUND = Found("e2e4", [Line(0, None, "exact", 1, 1, ["e2e4"])], 1, 0.0, 0, 0, [])


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def task(name: str | int) -> Task:
    return Task(name, "startpos", limits=Limits(nodes=1))


def chains_of(sizes: list[int]) -> list[Chain]:
    return [Chain([task(f"{chain}.{place}") for place in range(size)]) for chain, size in enumerate(sizes)]


def outcome(number: int, task: Task) -> Outcome:
    return Outcome(number, task.id, FOUND)


class FakeCrew:
    """Hands that search in virtual time, and are lost, stall and come as `chance` has it."""

    threads = 1

    def __init__(self, hands: int, chance: random.Random, clock: Clock, poison: frozenset[str] = frozenset()) -> None:
        self.chance, self.clock, self.poison = chance, clock, poison
        self.hands: dict[int, list[tuple[int, Task, int, bool]]] = {}
        self.sizes: dict[int, deque[int]] = {}
        self.events: list[ProcessJoined | ProcessLost | Done] = []
        self.late: list[Done] = []
        self.next = 0
        self.deaths: Counter[str | int] = Counter()
        self.batches: list[tuple[int, int]] = []
        self.histories: dict[int, list[tuple[int, bool, str | int]]] = {}
        self.assisted: list[tuple[int, int]] = []
        self.loss = 0.0
        self.cost = lambda task: 1.0
        for _ in range(hands):
            self.join()

    def join(self) -> None:
        self.hands[self.next] = []
        self.sizes[self.next] = deque()
        self.histories[self.next] = []
        self.events.append(ProcessJoined(self.next, "", f"hand {self.next}"))
        self.next += 1

    def send(self, hand: int, batch: Batch) -> None:
        self.batches.append((hand, batch.size))
        if hand not in self.hands:
            return
        self.sizes[hand].append(batch.size)
        assert len(self.sizes[hand]) <= MOST_IN_FLIGHT
        for piece in batch.pieces:
            for place, (number, one) in enumerate(piece.tasks):
                self.hands[hand].append((number, one, piece.chain, piece.begins and place == 0))

    def assist(self, hand: int, threads: int) -> None:
        self.assisted.append((hand, threads))

    def lose(self, hand: int) -> None:
        work = self.hands.pop(hand)
        done = []
        if work and self.chance.random() < 0.3:  # its last answer comes when it is taken for lost
            done = [outcome(work[0][0], work[0][1])]
            self.late.append(Done(hand, done))
        self.events.append(ProcessLost(hand, "it was lost"))
        self.join()

    def wait(self, timeout_s: float, awaited: int | None = None) -> list[ProcessJoined | ProcessLost | Done]:
        events, self.events = self.events, []
        if events:
            return events
        if self.late and self.chance.random() < 0.5:
            return [self.late.pop()]
        busy = [hand for hand, work in self.hands.items() if work]
        if not busy:
            self.clock.now += 0.2
            return []
        hand = self.chance.choice(busy)
        work = self.hands[hand]
        if work[0][1].id in self.poison:
            self.deaths[work[0][1].id] += 1
            self.hands.pop(hand)
            self.join()
            return [ProcessLost(hand, "it exited with code 1")]
        if self.chance.random() < self.loss:
            self.lose(hand)
            return []
        count = self.chance.randint(1, len(work))
        done = []
        for number, one, chain, begins in work[:count]:
            if one.id in self.poison:
                break
            self.clock.now += self.cost(one) / max(1, len(busy))
            self.histories[hand].append((chain, begins, one.id))
            done.append(outcome(number, one))
        del work[: len(done)]
        left = len(done)
        while left and self.sizes[hand]:
            taken = min(left, self.sizes[hand][0])
            self.sizes[hand][0] -= taken
            left -= taken
            if not self.sizes[hand][0]:
                self.sizes[hand].popleft()
        return [Done(hand, done)]

    def close(self) -> None:
        self.hands.clear()


def run(crew: FakeCrew, dispatcher: Dispatcher, steps: int = 200_000) -> list[Outcome]:
    results: list[Outcome] = []
    for _ in range(steps):
        for hand, batch in dispatcher.orders():
            crew.send(hand, batch)
        for hand, threads in dispatcher.assists():
            crew.assist(hand, threads)
        results += dispatcher.results()
        if dispatcher.is_over:
            return results
        for event in crew.wait(0.1):
            dispatcher.take(event)
    raise AssertionError(f"not over after {steps} steps: {len(results)} outcomes")


def check_histories(crew: FakeCrew) -> None:
    """Every chain was searched in its order at each hand, behind its own past or from a new beginning."""
    for history in crew.histories.values():
        last: tuple[int, int] | None = None
        for chain, begins, name in history:
            place = int(str(name).partition(".")[2])
            if not begins:
                assert last is not None
                assert last[0] == chain
                assert place > last[1]
            last = (chain, place)


@settings(max_examples=200, deadline=None)
@given(
    sizes=st.lists(st.integers(0, 7), max_size=40),
    hands=st.integers(1, 9),
    seed=st.integers(0, 2**32),
    loss=st.sampled_from([0.0, 0.02, 0.2]),
    ordered=st.booleans(),
    cost=st.sampled_from([0.001, 0.1, 3.0]),
    most_held=st.sampled_from([1, 5, 4096]),
)
def test_whatever_hands_do_every_task_has_one_outcome(
    sizes: list[int], hands: int, seed: int, loss: float, ordered: bool, cost: float, most_held: int
) -> None:
    clock = Clock()
    crew = FakeCrew(hands, random.Random(seed), clock)
    crew.loss = loss
    crew.cost = lambda one: cost
    finished: list[int] = []
    results = run(
        crew,
        Dispatcher(
            chains_of(sizes),
            ordered=ordered,
            most_held=most_held,
            on_finished=lambda one: finished.append(one.number),
            clock=clock,
        ),
    )
    names = [one.id for one in results]
    expected = [f"{chain}.{place}" for chain, size in enumerate(sizes) for place in range(size)]
    assert sorted(names) == sorted(expected)
    assert sorted(finished) == list(range(len(expected)))
    if ordered:
        assert names == expected
    if loss == 0.0:
        assert all(one.error is None for one in results)
        check_histories(crew)


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 6), min_size=1, max_size=30),
    hands=st.integers(1, 6),
    seed=st.integers(0, 2**32),
    data=st.data(),
)
def test_a_poisonous_position_is_bad_and_takes_none_with_it(
    sizes: list[int], hands: int, seed: int, data: st.DataObject
) -> None:
    names = [f"{chain}.{place}" for chain, size in enumerate(sizes) for place in range(size)]
    poison = frozenset(data.draw(st.lists(st.sampled_from(names), max_size=4)))
    clock = Clock()
    crew = FakeCrew(hands, random.Random(seed), clock, poison)
    crew.cost = lambda one: 0.01
    results = run(crew, Dispatcher(chains_of(sizes), clock=clock))
    assert sorted(str(one.id) for one in results) == sorted(names)
    assert {one.id for one in results if one.error is not None} == poison
    # one less where another of its batch is what killed the hand first
    assert all(MOST_TRIES - 1 <= crew.deaths[name] <= MOST_TRIES for name in poison)
    for one in results:
        assert one.error is None or "lost 3 times, the last time because it exited with code 1" in one.error


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), hands=st.integers(1, 6))
def test_the_innocent_beside_a_poisonous_position_are_found(seed: int, hands: int) -> None:
    clock = Clock()
    crew = FakeCrew(hands, random.Random(seed), clock, frozenset({"100.0"}))
    crew.cost = lambda one: 0.001
    results = run(crew, Dispatcher(chains_of([1] * 300), clock=clock))
    assert [one.id for one in results if one.error is not None] == ["100.0"]
    assert len(results) == 300


def lazily(count: int, read: list[int]) -> Iterator[Chain]:
    for number in range(count):
        read[0] = number + 1
        yield Chain([task(number)])


def test_a_long_iterable_is_read_as_it_is_needed() -> None:
    clock = Clock()
    crew = FakeCrew(4, random.Random(1), clock)
    crew.cost = lambda one: 0.002
    read = [0]
    dispatcher = Dispatcher(lazily(50_000, read), clock=clock)
    given_out = 0
    ahead = 0
    while not dispatcher.is_over:
        for hand, batch in dispatcher.orders():
            crew.send(hand, batch)
        given_out += len(dispatcher.results())
        ahead = max(ahead, read[0] - given_out)
        for event in crew.wait(0.1):
            dispatcher.take(event)
    assert given_out == 50_000
    assert ahead < 5 * 4 * 256


def test_batches_take_about_a_second_and_are_small_at_the_end() -> None:
    clock = Clock()
    crew = FakeCrew(2, random.Random(2), clock)
    crew.cost = lambda one: 0.02
    run(crew, Dispatcher(lazily(2_000, [0]), clock=clock))
    sizes = [size for _, size in crew.batches]
    assert sizes[:2] == [1, 1]
    assert 25 <= max(sizes) <= 120
    assert max(sizes[-4:]) <= 8


def test_one_long_search_after_the_other_is_not_queued_where_another_hand_could_take_it() -> None:
    clock = Clock()
    dispatcher = Dispatcher(lazily(3, [0]), clock=clock)
    dispatcher.take(ProcessJoined(0, "", "a"))
    dispatcher.take(ProcessJoined(1, "", "b"))
    assert [(hand, batch.size) for hand, batch in dispatcher.orders()] == [(0, 1), (1, 1)]
    assert dispatcher.orders() == []
    clock.now = 60.0
    dispatcher.take(Done(1, [outcome(1, task(1))]))
    assert [(hand, batch.size) for hand, batch in dispatcher.orders()] == [(1, 1)]


def test_a_slow_first_position_holds_back_those_behind_it_and_does_not_fill_the_memory() -> None:
    clock = Clock()
    read = [0]
    dispatcher = Dispatcher(lazily(10_000, read), ordered=True, most_held=50, clock=clock)
    for hand in range(2):
        dispatcher.take(ProcessJoined(hand, "", "hand"))
    at_work: dict[int, deque[tuple[int, Task]]] = {0: deque(), 1: deque()}
    for _ in range(2_000):
        for hand, batch in dispatcher.orders():
            at_work[hand].extend(entry for piece in batch.pieces for entry in piece.tasks)
        clock.now += 0.01
        if at_work[1]:
            dispatcher.take(Done(1, [outcome(*at_work[1].popleft())]))
    assert dispatcher.results() == []
    assert read[0] < 50 + 2 * 2 * 256
    dispatcher.take(Done(0, [outcome(*entry) for entry in at_work[0]]))
    assert [one.number for one in dispatcher.results()][:40] == list(range(40))


def test_what_a_hand_was_at_goes_alone_and_what_was_behind_it_does_not() -> None:
    clock = Clock()
    dispatcher = Dispatcher(lazily(8, [0]), clock=clock)
    dispatcher.take(ProcessJoined(0, "", "a"))
    sent = dispatcher.orders()
    clock.now = 0.1
    dispatcher.take(Done(0, [outcome(number, one) for number, one in sent[0][1].pieces[0].tasks]))
    sent = sent[1:] + dispatcher.orders()
    dispatcher.take(ProcessLost(0, "gone"))
    assert dispatcher.orders() == []
    dispatcher.take(ProcessJoined(1, "", "b"))
    again = dispatcher.orders()
    assert [batch.size for _, batch in again] == [1]  # the suspect, and nothing behind it
    assert again[0][1].pieces[0].tasks[0][0] == sent[0][1].pieces[0].tasks[0][0]
    assert again[0][1].pieces[0].begins


def test_an_answer_that_comes_twice_counts_once() -> None:
    clock = Clock()
    dispatcher = Dispatcher(lazily(1, [0]), clock=clock)
    dispatcher.take(ProcessJoined(0, "", "a"))
    dispatcher.orders()
    dispatcher.take(ProcessLost(0, "gone"))
    dispatcher.take(ProcessJoined(1, "", "b"))
    assert len(dispatcher.orders()) == 1
    dispatcher.take(Done(0, [outcome(0, task(0))]))
    assert [one.id for one in dispatcher.results()] == [0]
    dispatcher.take(Done(1, [outcome(0, task(0))]))
    assert dispatcher.results() == []
    assert dispatcher.is_over


def test_hands_without_work_help_those_that_have_some() -> None:
    clock = Clock()
    dispatcher = Dispatcher(lazily(3, [0]), assist=8, clock=clock)
    for hand in range(8):
        dispatcher.take(ProcessJoined(hand, "", "hand"))
    assert len(dispatcher.orders()) == 3
    assert dispatcher.assists() == []  # too soon
    clock.now = 1.0
    assert dispatcher.assists() == [(0, 3), (1, 3), (2, 2)]
    assert dispatcher.assists() == []
    dispatcher.take(Done(0, [outcome(0, task(0))]))
    dispatcher.take(Done(1, [outcome(1, task(1))]))
    assert dispatcher.assists() == [(2, 8)]


def test_no_help_while_there_may_be_more_to_read() -> None:
    clock = Clock()
    dispatcher = Dispatcher(lazily(300, [0]), assist=2, clock=clock)
    for hand in range(2):
        dispatcher.take(ProcessJoined(hand, "", "hand"))
    dispatcher.orders()
    clock.now = 1.0
    assert dispatcher.assists() == []


def test_what_the_iterable_raises_goes_through() -> None:
    def broken() -> Iterator[Chain]:
        yield Chain([task(0)])
        raise ValueError("no more")

    clock = Clock()
    with pytest.raises(ValueError, match="no more"):
        list(outcomes(FakeCrew(1, random.Random(1), clock), broken()))


def test_the_loop_gives_outcomes_as_they_come() -> None:
    clock = Clock()
    crew = FakeCrew(3, random.Random(4), clock)
    seen: list[int] = []
    found = [
        one.id for one in outcomes(crew, lazily(500, [0]), ordered=True, on_outcome=lambda o: seen.append(o.number))
    ]
    assert found == list(range(500))
    assert sorted(seen) == found


@settings(max_examples=100, deadline=None)
@given(
    sizes=st.lists(st.one_of(st.integers(0, 5), st.sampled_from(list(Pause))), max_size=60),
    hands=st.integers(1, 5),
    seed=st.integers(0, 2**32),
    ordered=st.booleans(),
    loss=st.sampled_from([0.0, 0.1]),
)
def test_pauses_of_the_input_lose_nothing(
    sizes: list[int | Pause], hands: int, seed: int, ordered: bool, loss: float
) -> None:
    clock = Clock()
    crew = FakeCrew(hands, random.Random(seed), clock)
    crew.cost = lambda one: 0.05
    crew.loss = loss
    chains: list[Chain | Pause] = [
        size if isinstance(size, Pause) else Chain([task(f"{number}.{place}") for place in range(size)])
        for number, size in enumerate(sizes)
    ]
    results = run(crew, Dispatcher(chains, ordered=ordered, clock=clock))
    expected = [
        f"{number}.{place}" for number, size in enumerate(sizes) if isinstance(size, int) for place in range(size)
    ]
    names = [one.id for one in results]
    assert (names if ordered else sorted(names, key=str)) == (expected if ordered else sorted(expected))


def test_behind_a_pause_nothing_is_read_until_the_next_round() -> None:
    read: list[int] = []

    def chains() -> Iterator[Chain | Pause]:
        for number in range(3):
            read.append(number)
            yield Chain([task(number)])
            yield Pause.INPUT

    clock = Clock()
    dispatcher = Dispatcher(chains(), assist=4, clock=clock)
    for hand in range(4):
        dispatcher.take(ProcessJoined(hand, "", "hand"))
    for number in range(3):
        assert [batch.size for _, batch in dispatcher.orders()] == [1]
        assert dispatcher.pause is Pause.INPUT
        assert read == list(range(number + 1))
        clock.now += 1.0
        assert dispatcher.assists() == []  # there may be more
    assert dispatcher.orders() == []
    assert dispatcher.pause is None
    assert [threads for _, threads in dispatcher.assists()] == [2]


def test_nothing_to_do() -> None:
    dispatcher = Dispatcher([Chain([]), Chain([])])
    assert dispatcher.orders() == []
    assert dispatcher.is_over
