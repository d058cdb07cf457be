"""A machine of a joint search by itself: what it is given, asked beside, and answers."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace

import chess
import pytest
from positions import KIWIPETE, MIDDLE_GAME

from psearch.core.constants import BOUND_EXACT
from psearch.options import SearchOptions
from psearch.remote.one_position.joint_messages import Finished, Forget, MachineSettings, News, Orders, Search
from psearch.remote.one_position.machine import Machine
from psearch.remote.one_position.machine_messages import MachineReport, Parcel
from psearch.results import Limits

SETTINGS = MachineSettings(hash_mb=4, most_threads=1)
ENDLESS = Limits()


def search(number: int, limits: Limits, fen: str = MIDDLE_GAME, machine: int = 3) -> Search:
    return Search(number, machine, chess.Board(fen), limits, SearchOptions(), None, 1)


@pytest.fixture(scope="module")
def machines() -> Iterator[list[Machine]]:
    made = [Machine(SETTINGS, 2), Machine(replace(SETTINGS, most_threads=None), 2)]
    yield made
    for machine in made:
        machine.close()


@pytest.fixture(autouse=True)
def forgotten(machines: list[Machine]) -> None:
    for machine in machines:
        machine(Forget(1))


class Working:
    """A search in a thread of its own."""

    def __init__(self, machine: Machine, work: Search) -> None:
        self.finished: Finished | None = None
        self.machine, self.work = machine, work
        self.thread = threading.Thread(target=self._run)
        self.thread.start()
        while machine.beside(Orders(work.number)).nodes == 0 and self.thread.is_alive():
            time.sleep(0.005)

    def _run(self) -> None:
        self.finished = self.machine(self.work)

    def end(self) -> Finished:
        self.machine.beside(Orders(self.work.number, stop=True))
        self.thread.join(60)
        assert self.finished is not None
        return self.finished


def test_it_searches_to_its_limit_and_tells_all(machines: list[Machine]) -> None:
    finished = machines[0](search(1, Limits(depth=6)))
    assert finished is not None and finished.is_complete
    news = finished.news
    assert news.search == 1 and news.nodes > 0 and news.parcel is None
    exact = [report for report in news.reports if report.bound == BOUND_EXACT]
    assert [report.depth for report in exact] == [1, 2, 3, 4, 5, 6]
    assert all(report.machine == 3 and report.pv for report in news.reports)
    assert machines[0].beside(Orders(1)) == News(1, news.nodes)


def test_its_share_of_the_nodes_is_not_the_end_of_the_search(machines: list[Machine]) -> None:
    finished = machines[0](search(2, Limits(nodes=20_000)))
    assert finished is not None and not finished.is_complete
    assert 20_000 <= finished.news.nodes < 25_000


def test_another_seed_is_other_luck(machines: list[Machine]) -> None:
    nodes = []
    for seed in (1, 2, 1):
        machines[0](Forget(seed))
        finished = machines[0](search(3, Limits(depth=8)))
        assert finished is not None
        nodes.append(finished.news.nodes)
    assert nodes[0] == nodes[2] != nodes[1]


def test_it_stops_when_it_is_told(machines: list[Machine]) -> None:
    for machine in machines:
        working = Working(machine, search(4, ENDLESS))
        begun = time.monotonic()
        finished = working.end()
        assert time.monotonic() - begun < 2
        assert not finished.is_complete and finished.news.nodes > 0


def test_a_stop_may_come_before_the_search(machines: list[Machine]) -> None:
    machine = machines[0]
    machine.beside(Orders(6, stop=True))
    for number in (5, 6):
        assert machine(search(number, ENDLESS)) == Finished(News(number), False)
    finished = machine(search(7, Limits(depth=3)))
    assert finished is not None and finished.is_complete


def test_orders_of_another_search_do_nothing(machines: list[Machine]) -> None:
    working = Working(machines[0], search(8, ENDLESS))
    assert machines[0].beside(Orders(7, stop=True)) == News(7)
    assert machines[0].beside(Orders(9)) == News(9)
    assert working.thread.is_alive()
    working.end()


def test_entries_go_from_one_to_the_other(machines: list[Machine]) -> None:
    one, two = machines
    first, second = Working(one, search(10, ENDLESS)), Working(two, search(10, ENDLESS))
    parcels: list[Parcel] = []
    end = time.monotonic() + 60
    while sum(len(parcel.entries) for parcel in parcels) < 500 and time.monotonic() < end:
        news = one.beside(Orders(10, room=100))
        parcels += [news.parcel] if news.parcel is not None else []
        time.sleep(0.01)
    assert all(len(parcel.entries) <= 100 and parcel.machine == 3 for parcel in parcels)
    before = two._sharing.taken
    two.beside(Orders(10, tuple(parcels), 100))
    assert two._sharing.received >= 500 and two._sharing.taken > before
    first.end()
    second.end()
    assert one.beside(Orders(10, room=100)).parcel is None, "a search that is over has nothing to send"


def test_the_moves_that_led_there_count(machines: list[Machine]) -> None:
    board = chess.Board("k7/8/8/8/8/8/7R/K7 w - - 0 1")
    for _ in range(2):
        for move in ("h2g2", "a8b8", "g2h2", "b8a8"):
            board.push_uci(move)
    only = (chess.Move.from_uci("h2g2"),)
    for played, drawn in ((board, True), (chess.Board(board.fen()), False)):
        finished = machines[0](replace(search(13, Limits(depth=5)), board=played, only=only))
        assert finished is not None and (finished.news.reports[-1].score == 0) == drawn


def test_several_lines(machines: list[Machine]) -> None:
    finished = machines[0](replace(search(11, Limits(depth=4), KIWIPETE), multipv=3))
    assert finished is not None
    last = [report for report in finished.news.reports if report.depth == 4]
    assert [report.line for report in last] == [1, 2, 3]
    assert [report.score for report in last] == sorted((report.score for report in last), reverse=True)


def test_a_lost_worker_is_replaced_and_entries_go_on(machines: list[Machine]) -> None:
    machine = machines[1]
    working = Working(machine, search(12, ENDLESS))
    machine._supervisor.pool.workers[1].kill()
    arena = machine._exchange.arena
    end = time.monotonic() + 60
    while machine._exchange.arena is arena and time.monotonic() < end:
        machine.beside(Orders(12, room=100))
        time.sleep(0.01)
    assert machine._exchange.arena is not arena
    found = 0
    while found == 0 and time.monotonic() < end:
        news = machine.beside(Orders(12, room=100))
        found += 0 if news.parcel is None else len(news.parcel.entries)
        time.sleep(0.01)
    assert found > 0
    reports: list[MachineReport] = list(working.end().news.reports)
    assert all(report.nodes >= 0 for report in reports)
