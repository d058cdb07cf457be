"""Virtual time: what sharing costs, and nothing where it costs nothing."""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import chess
import numpy as np
import pytest
from round_robin_entries import ROUND_ROBIN, step_worker

from psearch.arena.arena import Arena
from psearch.arena.setup import write_search
from psearch.options import SearchOptions
from psearch.results import Limits
from psearch.scheduler.scheduler_entries import load_kernels
from psearch.simulation.costs import SHARING, Costs
from psearch.simulation.simulation_entries import VIRTUAL
from psearch.simulation.simulator import Simulator, VirtualSample
from psearch_core.constants import STATE_IDLE
from psearch_core.records import COLD_NODES, simulation_dtype

KIWIPETE = "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1"
MIDDLE_GAME = "r1bq1rk1/pp3ppp/2n1pn2/3p4/3P4/2PBPN2/P4PPP/R1BQ1RK1 w - - 0 10"
NOTHING_SHARED = Costs().without_sharing()
_MOST_TRANSITIONS = 256


@pytest.fixture(scope="module", autouse=True)
def kernels() -> None:
    load_kernels(ROUND_ROBIN, VIRTUAL)


@pytest.fixture(scope="module")
def eight() -> Iterator[Simulator]:
    simulator = Simulator(8, 4, Costs())
    yield simulator
    simulator.close()


def search(simulator: Simulator, costs: Costs, depth: int = 8, policy: str = "calibrated") -> VirtualSample:
    simulator.costs = costs
    return simulator.search("x", chess.Board(KIWIPETE), depth, SearchOptions(policy=policy))


class NaiveDriver:
    """The driver as it is where sharing costs nothing, in Python: the worker with the least clock has its turn."""

    def __init__(self, arena: Arena, costs: Costs) -> None:
        self.arena = arena
        self.costs = {name: round(1000 * value) for name, value in asdict(costs).items() if isinstance(value, float)}
        self.costs["poll"] = int(1000 * (costs.poll + costs.poll_stack * arena.stacks))
        self.heap = [(0, worker) for worker in range(arena.workers)]
        self.asleep: list[int] = []
        self.free: dict[int, int] = {}

    def run(self) -> int:
        """Search to the end; gives the last clock, in ticks."""
        now = 0
        while not self.arena.header[0]["done"]:
            now, worker = heapq.heappop(self.heap)
            clock = self.turn(worker, now)
            if clock is None:
                self.asleep.append(worker)
            else:
                now = clock
                heapq.heappush(self.heap, (clock, worker))
        return now

    def wake(self, clock: int) -> None:
        if self.asleep:
            heapq.heappush(self.heap, (clock + self.costs["poll"], self.asleep.pop(0)))

    def turn(self, number: int, clock: int) -> int | None:
        worker, begun, costs = self.arena.worker[number], clock, self.costs
        before = {name: int(worker["counters"][name]) for name in worker["counters"].dtype.names}
        nodes, was_idle = int(worker["nodes"]), worker["state"] == STATE_IDLE
        held = [home for home, free in self.free.items() if free > clock]
        self.arena.frames["node"]["lock"][held] = was_idle  # a look for work passes them over
        for _ in range(_MOST_TRANSITIONS):
            if step_worker(self.arena.context, number, 1) > 0:
                break
            if worker["nodes"] != nodes or worker["state"] == STATE_IDLE:
                break
        self.arena.frames["node"]["lock"][held] = 0
        done = {name: int(worker["counters"][name]) - value for name, value in before.items()}
        is_idle = worker["state"] == STATE_IDLE
        cost = done["qnodes"] * costs["qnode"] + (int(worker["nodes"]) - nodes - done["qnodes"]) * costs["node"]
        cost += done["opens"] * costs["open"] + done["joins"] * costs["join"]
        cost += (done["parks"] + done["adopts"]) * costs["leave"] + done["aborts"] * costs["abort"]
        cost += costs["leave"] if is_idle and not was_idle else 0
        if worker["last_lock"] >= 0:
            home = int(worker["last_lock"])
            clock = max(clock, self.free.get(home, 0)) + costs["lock"]
            self.free[home] = clock
            worker["last_lock"] = -1
        clock += cost
        if done["opens"]:
            self.wake(clock)
        if done["joins"]:
            self.wake(begun)
            self.wake(begun)
        if was_idle and is_idle and not done["joins"]:
            return clock + costs["poll"] if done["failed_joins"] or done["held_offers"] else None
        return clock


@pytest.mark.parametrize("workers", [2, 8])
@pytest.mark.parametrize("policy", ["calibrated", "ybw", "lazy"])
def test_where_sharing_costs_nothing_it_is_as_before(workers: int, policy: str) -> None:
    costs = replace(NOTHING_SHARED, lock=37.0)
    simulator = Simulator(workers, 1, costs)
    depth = 4 if policy == "lazy" else 5
    sample = search(simulator, costs, depth, policy)
    simulator.close()
    arena = Arena(workers, 1)
    arena.header["age"] = 0
    options = SearchOptions(policy=policy, join_cost=costs.join_in_nodes)
    write_search(arena, chess.Board(KIWIPETE), Limits(depth=depth), options)
    time = NaiveDriver(arena, costs).run()
    assert (int(arena.worker["nodes"].sum()), time) == (sample.nodes, round(sample.seconds * 10**12))
    assert (sample.joins > 0) == (policy != "lazy")
    arena.close()


@pytest.mark.parametrize("name", SHARING)
def test_each_cost_of_sharing_makes_a_search_other(eight: Simulator, name: str) -> None:
    """And by itself: all others are zero. Twice the same."""
    plain = search(eight, NOTHING_SHARED)
    costs = replace(NOTHING_SHARED, **{name: 0.5 if name == "crowd" else 5000.0})
    found = search(eight, costs)
    assert (found.nodes, found.seconds) != (plain.nodes, plain.seconds)
    assert search(eight, costs) == found


@pytest.mark.parametrize("costs", [Costs(), replace(Costs(), transfer=5000.0, cold=50_000.0, crowd=1.0)])
def test_one_worker_shares_with_nobody(costs: Costs) -> None:
    alone = Simulator(1, 1, costs)
    assert search(alone, costs, 6) == search(alone, costs.without_sharing(), 6)
    alone.close()


def test_sharing_makes_nodes_dearer_and_dearer(eight: Simulator) -> None:
    speeds = []
    for factor in (0, 2, 8):
        costs = replace(Costs(), **{name: getattr(Costs(), name) * factor for name in SHARING})
        sample = search(eight, costs, depth=9)
        speeds.append(sample.nodes / sample.seconds)
    assert speeds[0] > 1.1 * speeds[1] > 1.1**2 * speeds[2]


def test_what_a_node_costs_fades_after_a_join() -> None:
    record = np.zeros(1, simulation_dtype)[0]
    replace(Costs(), cold=1000.0).write(record, stacks=10)
    assert record["cold"].tolist()[:4] == [1_000_000, 707_106, 577_350, 500_000]
    assert record["cold"][COLD_NODES - 1] == 1_000_000 // 16
    assert record["costs"]["crowd"] == int(Costs().crowd * 65536)


def test_costs_from_before_charge_nothing_for_sharing(tmp_path: Path) -> None:
    path = tmp_path / "costs.json"
    values = {name: value for name, value in asdict(Costs()).items() if name not in SHARING}
    path.write_text(json.dumps(values))
    assert Costs.load(path) == NOTHING_SHARED
    path.write_text(json.dumps({**values, "transfer": 50.0}))
    assert Costs.load(path) == replace(NOTHING_SHARED, transfer=50.0)
