"""Virtual time: deterministic, true to the serial search with one worker, and sound with up to 1,024; what sharing
costs, and nothing where it costs nothing."""

from __future__ import annotations

import heapq
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import chess
import numpy as np
import pytest
from naive import NaiveSearch
from positions import KIWIPETE, MIDDLE_GAME
from round_robin_entries import ROUND_ROBIN, step_worker

from psearch.arena.arena import Arena
from psearch.arena.setup import write_search
from psearch.arena.validate import leftovers
from psearch.bench import BENCH_POSITIONS
from psearch.defaults import MAX_DEPTH, MAX_THREADS, POLICY_NAMES
from psearch.lab.studies.comparisons import Row, fit_lines, fit_times, non_negative_pair
from psearch.lab.studies.virtual_study import Study, find_depths, run_study
from psearch.options import SearchOptions
from psearch.results import Limits, PsearchError
from psearch.scheduler.scheduler_entries import load_kernels, work
from psearch.simulation.costs import SHARING, Costs
from psearch.simulation.simulation_entries import VIRTUAL
from psearch.simulation.simulator import Simulator, VirtualSample
from psearch.text.epd_text import SuitePosition
from psearch_core.constants import STATE_IDLE
from psearch_core.records import COLD_NODES, MAX_WORKERS, simulation_dtype

ENDING = "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1"
SUITE = [SuitePosition("middle game", chess.Board(MIDDLE_GAME)), SuitePosition("kiwipete", chess.Board(KIWIPETE))]
OTHERS = [name for name in POLICY_NAMES if name != "serial"]
NOTHING_SHARED = Costs().without_sharing()
_MOST_TRANSITIONS = 256
JITTER = replace(Costs(), jitter=0.5)


@pytest.fixture(scope="module", autouse=True)
def kernels() -> None:
    load_kernels(ROUND_ROBIN, VIRTUAL)


@pytest.fixture(scope="module")
def simulators() -> Iterator[dict[int, Simulator]]:
    """One for each worker count, with a small table."""
    made = {workers: Simulator(workers, 4, Costs()) for workers in (1, 2, 3, 8, 64)}
    yield made
    for simulator in made.values():
        simulator.close()


@pytest.fixture(scope="module")
def plain_values(simulators: dict[int, Simulator]) -> dict[tuple[str, int], int]:
    """Position and depth: what naive negamax finds, as deep as it comes."""
    twin = NaiveSearch(simulators[1].arena.tables, max_nodes=100_000)
    found = {}
    for fen in (MIDDLE_GAME, KIWIPETE, ENDING):
        for depth in (1, 2, 3):
            value = twin.value(chess.Board(fen), depth)
            if value is not None:
                found[fen, depth] = value
    assert (MIDDLE_GAME, 2) in found and (ENDING, 3) in found
    return found


def search(
    simulator: Simulator, fen: str, depth: int, policy: str = "calibrated", seed: int = 0, **how: Any
) -> VirtualSample:
    sample = simulator.search("x", chess.Board(fen), depth, SearchOptions(policy=policy, **how), seed)
    assert leftovers(simulator.arena) == []
    return sample


@pytest.mark.parametrize("events", [150, 3000])
def test_a_search_after_an_interrupted_one_is_as_any_other(simulators: dict[int, Simulator], events: int) -> None:
    simulator = simulators[8]
    wanted = search(simulator, KIWIPETE, 5)
    left = events

    def interrupt() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        simulator.search("x", chess.Board(KIWIPETE), 5, SearchOptions(), validate=True, watch=interrupt)
    assert len([line for line in leftovers(simulator.arena) if line.startswith("stack")]) > 1
    assert search(simulator, KIWIPETE, 5) == wanted


@pytest.mark.parametrize("policy", OTHERS)
@pytest.mark.parametrize("workers", [2, 8, 64])
def test_twice_the_same_and_idle_for_a_share_of_the_time(
    simulators: dict[int, Simulator], policy: str, workers: int
) -> None:
    first = search(simulators[workers], KIWIPETE, 6, policy)
    assert 0 <= first.idle_share <= 1
    assert 0 <= search(simulators[workers], MIDDLE_GAME, 6, policy).idle_share <= 1
    assert search(simulators[workers], KIWIPETE, 6, policy) == first
    fresh = Simulator(workers, 4, Costs())
    assert search(fresh, KIWIPETE, 6, policy) == first
    fresh.close()


def test_the_same_in_another_process(simulators: dict[int, Simulator]) -> None:
    program = f"""
import json, chess
from dataclasses import asdict, replace
from psearch.simulation.costs import Costs
from psearch.scheduler.scheduler_entries import load_kernels
from psearch.options import SearchOptions
from psearch.simulation.simulation_entries import VIRTUAL
from psearch.simulation.simulator import Simulator
load_kernels()
simulator = Simulator(8, 4, replace(Costs(), jitter=0.5))
print(json.dumps(asdict(simulator.search("x", chess.Board({KIWIPETE!r}), 6, SearchOptions(), 11))))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True)
    jittery = Simulator(8, 4, JITTER)
    assert VirtualSample(**json.loads(done.stdout)) == search(jittery, KIWIPETE, 6, seed=11)
    jittery.close()


@pytest.mark.parametrize("policy", list(POLICY_NAMES))
@pytest.mark.parametrize("fen", [MIDDLE_GAME, KIWIPETE])
def test_one_worker_is_the_serial_search(simulators: dict[int, Simulator], policy: str, fen: str) -> None:
    arena = Arena(1, 4)
    arena.header["age"] = 0
    write_search(arena, chess.Board(fen), Limits(depth=7), SearchOptions(policy="serial"))
    while not work(arena.context, 0, 1 << 20):
        continue
    sample = search(simulators[1], fen, 7, policy)
    assert sample.nodes == int(arena.worker["nodes"][0])
    assert (sample.score, sample.bestmove) == (int(arena.header[0]["score"]), int(arena.header[0]["best_move"]))
    assert (sample.splits, sample.joins, sample.aborted_nodes) == (0, 0, 0)
    assert sample.idle_share == 0
    arena.close()


def test_one_worker_takes_the_price_of_its_nodes(simulators: dict[int, Simulator]) -> None:
    flat = Simulator(1, 4, replace(Costs(), node=400.0, qnode=400.0))
    sample = search(flat, KIWIPETE, 6, "serial")
    leaving_the_root = Costs().leave * 1e-9
    assert sample.seconds == pytest.approx(sample.nodes * 400e-9 + leaving_the_root, rel=1e-9)
    flat.close()


@pytest.mark.parametrize("workers", [3, 8])
def test_hours_of_virtual_time_pass_like_seconds(tmp_path: Path, workers: int) -> None:
    """A clock in picoseconds passes 2^53 after two and a half hours, and the driver's heap has no more room."""
    names = ["node", "qnode", "open", "join", "leave", "lock", "poll", "abort", "claim"]
    names += SHARING
    quick = replace(Costs(), poll_stack=0.0, cold=0.0, crowd=0.0)  # what is not rounded when it is multiplied
    slow = replace(quick, **{name: getattr(quick, name) * 10**8 for name in names})
    found = []
    for costs in (quick, slow):
        simulator = Simulator(workers, 4, costs, trace_events=4096)
        found.append(search(simulator, MIDDLE_GAME, 8))
        simulator.recorder.write(tmp_path / "trace.json", {})
        simulator.close()
    assert found[1].seconds > 3 * 2**53 / 10**12
    assert found[1].joins > 10
    assert found[1].seconds == pytest.approx(found[0].seconds * 10**8, rel=1e-12)
    shares = {"seconds": 0, "idle_share": 0, "wait_share": 0}
    assert replace(found[1], **shares) == replace(found[0], **shares)
    assert found[1].idle_share == pytest.approx(found[0].idle_share)
    assert found[1].wait_share == pytest.approx(found[0].wait_share)
    ends = [
        event["ts"] + event["dur"]
        for event in json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
        if event["ph"] == "X"
    ]
    assert max(ends) == pytest.approx(found[1].seconds * 10**6)


def test_a_seed_changes_the_interleaving_only_with_jitter(simulators: dict[int, Simulator]) -> None:
    assert search(simulators[8], KIWIPETE, 7, seed=1) == replace(search(simulators[8], KIWIPETE, 7, seed=2), seed=1)
    jittery = Simulator(8, 4, JITTER)
    found = [search(jittery, KIWIPETE, 7, seed=seed) for seed in (1, 2, 1)]
    assert found[0] == found[2]
    assert found[0].nodes != found[1].nodes
    jittery.close()


def test_eight_workers_are_faster(simulators: dict[int, Simulator]) -> None:
    """In the mean of ten trees: one of them is easily 1.5 times as long by luck."""
    speedups = []
    for fen in BENCH_POSITIONS[:10]:
        alone = search(simulators[1], fen, 13, "serial")
        shared = search(simulators[8], fen, 13)
        assert shared.joins > 0 and shared.splits > 0
        assert shared.aborted_nodes < shared.nodes
        speedups.append(alone.seconds / shared.seconds)
    assert geometric_mean(speedups) > 2


@pytest.mark.parametrize("policy", OTHERS)
def test_plain_values_are_those_of_negamax(
    simulators: dict[int, Simulator], plain_values: dict[tuple[str, int], int], policy: str
) -> None:
    joins = 0
    for (fen, depth), expected in plain_values.items():
        for workers in (2, 3, 64):
            options = SearchOptions.plain(policy, split_depth=1)
            sample = simulators[workers].search("x", chess.Board(fen), depth, options)
            assert sample.score == expected, (fen, depth, workers)
            joins += sample.joins
    assert joins > 0 or policy in ("lazy", "abdada")


@pytest.mark.parametrize("workers", [2, 3, 8, 64])
def test_plain_values_in_hundreds_of_interleavings(plain_values: dict[tuple[str, int], int], workers: int) -> None:
    """Every seed is another order of events; the policies and positions take turns."""
    jittery = Simulator(workers, 1, replace(Costs(), jitter=1.0))
    cases = list(plain_values.items())
    joins = 0
    for seed in range(300):
        (fen, depth), expected = cases[seed % len(cases)]
        policy = OTHERS[seed % len(OTHERS)]
        sample = jittery.search("x", chess.Board(fen), depth, SearchOptions.plain(policy), seed)
        assert sample.score == expected, (fen, depth, policy, seed)
        assert leftovers(jittery.arena) == []
        joins += sample.joins
    assert joins > 300
    jittery.close()


def claims(simulator: Simulator) -> int:
    return int(np.count_nonzero(simulator.arena.header[0]["claims"]))


@pytest.mark.parametrize("policy", ["calibrated", "ybw", "abdada"])
def test_moves_are_put_off_and_no_claim_is_left(simulators: dict[int, Simulator], policy: str) -> None:
    nodes = set()
    for depth in (0, 1, 3):
        nodes.add(search(simulators[8], MIDDLE_GAME, 8, policy, defer_depth=depth).nodes)
        assert claims(simulators[8]) == 0
    assert len(nodes) == 3
    limited = Limits(nodes=50_000)
    simulators[8]._begin(chess.Board(MIDDLE_GAME), limited, SearchOptions(policy=policy), 0)
    while not simulators[8].arena.header[0]["done"]:
        simulators[8]._run(False, None)
    assert claims(simulators[8]) == 0


@pytest.mark.parametrize("policy", ["calibrated", "kannan"])
def test_young_brothers_may_be_told_to_wait(simulators: dict[int, Simulator], policy: str) -> None:
    eager = search(simulators[8], MIDDLE_GAME, 8, policy)
    waiting = search(simulators[8], MIDDLE_GAME, 8, policy, wait=True)
    assert eager.nodes != waiting.nodes
    assert waiting.joins > 0
    for which in ("ybw", "root"):  # they wait anyway
        assert search(simulators[8], KIWIPETE, 6, which) == search(simulators[8], KIWIPETE, 6, which, wait=True)


def test_the_cost_of_a_join_counts_while_all_are_busy(simulators: dict[int, Simulator]) -> None:
    """The dearer a join, the fewer nodes are opened ahead of need. One worker is never idle and has only one tree."""
    nodes, opened = set(), []
    for join_cost in (1, 4, 1000):
        nodes.add(search(simulators[1], MIDDLE_GAME, 10, join_cost=join_cost).nodes)
        opened.append(int(simulators[1].arena.worker["counters"]["opens"].sum()))
    assert len(nodes) == 1
    assert opened[0] > opened[1] > opened[2] > 0


@pytest.mark.parametrize("policy", OTHERS)
def test_every_invariant_after_every_event(policy: str) -> None:
    jittery = Simulator(3, 1, JITTER)
    options = SearchOptions(policy=policy, split_depth=1)
    assert jittery.search("x", chess.Board(KIWIPETE), 2, options, seed=3, validate=True).nodes > 0
    jittery.close()


def test_there_is_one_greatest_number_of_workers() -> None:
    assert MAX_THREADS == MAX_WORKERS


def test_1024_workers() -> None:
    simulator = Simulator(1024, 16, Costs())
    sample = search(simulator, MIDDLE_GAME, 7)
    assert sample.threads == 1024
    assert sample.joins > 100
    assert 0 < sample.idle_share < 1
    simulator.close()


def test_the_nodes_of_each_iteration(simulators: dict[int, Simulator]) -> None:
    board, serial = chess.Board(MIDDLE_GAME), SearchOptions(policy="serial")

    def sizes(history: int) -> dict[int, int]:
        return simulators[1].iterations(board, serial, lambda found, nodes: nodes > 200_000, history)

    found = sizes(history=7)
    assert list(found) == list(range(1, max(found) + 1)) and list(found.values()) == sorted(found.values())
    assert 20_000 < max(found.values()) < 1_000_000
    for depth in (3, 7, max(found)):
        again = simulators[1].search("x", board, depth, serial, history=7)
        assert (again.nodes, again.history) == (found[depth], 7)
    assert sizes(history=8) != found != sizes(history=0)
    assert search(simulators[1], MIDDLE_GAME, 7, "serial").nodes == sizes(history=0)[7]


def test_a_mate_ends_the_iterations(simulators: dict[int, Simulator]) -> None:
    mate = chess.Board("6k1/5ppp/8/8/8/8/5PPP/R5K1 w - - 0 1")
    found = simulators[1].iterations(mate, SearchOptions(policy="serial"), lambda found, nodes: False)
    assert max(found) == MAX_DEPTH


# The study


def test_a_study_chooses_depths_and_leaves_out_what_is_too_quick() -> None:
    mate = SuitePosition("mate in one", chess.Board("6k1/5ppp/8/8/8/8/5PPP/R5K1 w - - 0 1"))
    study = Study([SUITE[0], mate, SUITE[1]], None, [2], ["ybw"], Costs(), hash_mb=2, tree_nodes=200_000)
    samples = run(study, 2)
    assert {sample.position for sample in samples} == {"middle game", "kiwipete"}
    alone = [sample for sample in samples if sample.threads == 1]
    assert all(50_000 < sample.nodes < 800_000 for sample in alone)
    depths = {sample.fen: sample.depth for sample in alone}
    assert all(sample.depth == depths[sample.fen] for sample in samples)
    assert len({sample.history for sample in samples}) == len(samples) and min(s.history for s in samples) > 0
    later = SuitePosition("mate in two", chess.Board("kbK5/pp6/1P6/8/8/8/8/R7 w - - 0 1"))
    assert find_depths(replace(study, suite=[later], tree_nodes=10_000)) == [0], "it ends in a mate, after 4,647 nodes"
    with pytest.raises(PsearchError, match="no position takes one worker"):
        run(replace(study, suite=[mate]), 1)


def run(study: Study, jobs: int) -> list[VirtualSample]:
    samples: list[VirtualSample] = []
    run_study(study, jobs, samples.append)
    return samples


def test_repeats_of_a_study_have_other_luck() -> None:
    study = Study(SUITE, 9, [1, 2], ["ybw"], Costs(), hash_mb=2, repeats=3)
    samples = run(study, 1)
    assert [(s.threads, s.repeat) for s in samples if s.position == "kiwipete"] == [
        (threads, repeat) for threads in (1, 2) for repeat in range(3)
    ]
    for threads in (1, 2):
        for position in SUITE:
            assert len({s.nodes for s in samples if (s.threads, s.position) == (threads, position.name)}) == 3
    assert all(one.nodes != two.nodes for one, two in zip(samples, run(replace(study, seed=1), 1), strict=True))


def test_a_study_is_the_same_with_any_number_of_jobs() -> None:
    study = Study(SUITE, 5, [1, 2, 8], ["calibrated", "ybw"], JITTER, seed=5, hash_mb=2)
    alone = run(study, 1)
    assert [(s.threads, s.policy, s.position) for s in alone] == [
        (count, policy, position.name)
        for count, policy in [(1, "serial"), (2, "calibrated"), (2, "ybw"), (8, "calibrated"), (8, "ybw")]
        for position in SUITE
    ]
    assert run(study, 2) == alone


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_interrupted_study_keeps_what_is_finished(jobs: int) -> None:
    study = Study(SUITE, 4, [2], ["ybw"], Costs(), hash_mb=2)
    kept: list[VirtualSample] = []

    def interrupt(text: str, done: float = 0, total: float = 0) -> None:
        if len(kept) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_study(study, jobs, kept.append, interrupt)
    assert 2 <= len(kept) < 4 or jobs > 1
    assert kept == run(study, 1)[: len(kept)]


def test_an_interrupt_while_memory_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """The arena of one worker makes room for that of two, and is closed once."""
    close = Simulator.close
    closed: list[int] = []

    def interrupted(simulator: Simulator) -> None:
        close(simulator)
        closed.append(simulator.arena.workers)
        raise KeyboardInterrupt

    monkeypatch.setattr(Simulator, "close", interrupted)
    study = Study(SUITE, 3, [2], ["ybw"], Costs(), hash_mb=2)
    with pytest.raises(KeyboardInterrupt):
        run(study, 1)
    assert closed == [1]


def test_an_error_in_a_job_reaches_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    study = Study(SUITE, 4, [2], ["ybw"], Costs(), hash_mb=1 << 40)
    with pytest.raises(PsearchError, match="not enough memory"):
        run_study(study, 2, lambda sample: None)


def row(threads: int, speedup: float, policy: str = "ybw") -> Row:
    return Row(policy, threads, 1, speedup, speedup, speedup, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0)


def test_fit_of_work_and_critical_path() -> None:
    rows = [row(count, 1 / (0.01 + 0.99 / count)) for count in (2, 4, 8, 16, 1024)]
    (fit,) = fit_times([*rows, row(2, 1.5, "root")])
    assert (fit.policy, fit.c, fit.w) == ("ybw", pytest.approx(0.01), pytest.approx(0.99))
    assert fit.error < 1e-9
    assert "T(P)/T(1) = c + w/P" in fit_lines([fit]).splitlines()[0]
    assert fit_lines([fit]).splitlines()[1].split()[:4] == ["ybw", "0.01000", "+", "0.990/P:"]


def test_fit_has_no_negative_part() -> None:
    (fit,) = fit_times([row(2, 2.2), row(4, 5.0), row(8, 11.0)])
    assert fit.c == 0 and fit.w > 0
    assert "no limit" in fit_lines([fit])
    terms = np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 1.0]])
    assert non_negative_pair(terms, terms @ np.array([3.0, 5.0])) == (pytest.approx(3), pytest.approx(5))
    assert non_negative_pair(terms, -np.ones(3)) == (0.0, 0.0)


# Costs


def test_costs_come_back(tmp_path: Path) -> None:
    path = tmp_path / "costs.json"
    costs = replace(Costs(), node=123.5, jitter=0.25, machine="mine", measured="2026-01-01")
    costs.save(path)
    assert Costs.load(path) == costs
    simulation = np.zeros(1, simulation_dtype)[0]
    costs.write(simulation, stacks=100)
    record = simulation["costs"]
    assert record["node"] == 123_500
    assert record["jitter"] == 65536 // 4
    assert record["poll"] == int((costs.poll + 100 * costs.poll_stack) * 1000)


@pytest.mark.parametrize("text", ["", "[]", '{"nodes": 3}', "{", '{"node": 0}', '{"qnode": 0.5}'])
def test_what_are_no_costs(tmp_path: Path, text: str) -> None:
    path = tmp_path / "costs.json"
    path.write_text(text)
    with pytest.raises(PsearchError, match="cannot read costs"):
        Costs.load(path)


# What sharing costs, and nothing where it costs nothing


@pytest.fixture(scope="module")
def eight() -> Iterator[Simulator]:
    """A simulator whose costs the tests change."""
    simulator = Simulator(8, 4, Costs())
    yield simulator
    simulator.close()


def search_with(simulator: Simulator, costs: Costs, depth: int = 8, policy: str = "calibrated") -> VirtualSample:
    simulator.costs = costs
    return search(simulator, KIWIPETE, depth, policy)


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
    sample = search_with(simulator, costs, depth, policy)
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
    """It does so by itself: all others are zero. Two searches are the same."""
    plain = search_with(eight, NOTHING_SHARED)
    costs = replace(NOTHING_SHARED, **{name: 0.5 if name == "crowd" else 5000.0})
    found = search_with(eight, costs)
    assert (found.nodes, found.seconds) != (plain.nodes, plain.seconds)
    assert search_with(eight, costs) == found


@pytest.mark.parametrize("costs", [Costs(), replace(Costs(), transfer=5000.0, cold=50_000.0, crowd=1.0)])
def test_one_worker_shares_with_nobody(costs: Costs) -> None:
    alone = Simulator(1, 1, costs)
    assert search_with(alone, costs, 6) == search_with(alone, costs.without_sharing(), 6)
    alone.close()


def test_sharing_makes_nodes_dearer_and_dearer(eight: Simulator) -> None:
    speeds = []
    for factor in (0, 2, 8):
        costs = replace(Costs(), **{name: getattr(Costs(), name) * factor for name in SHARING})
        sample = search_with(eight, costs, depth=9)
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


ONE_MOVE = "7k/8/8/8/8/8/1r6/K7 w - - 0 1"
MILLISECOND = 0.001


@pytest.fixture(scope="module")
def eight_workers() -> Iterator[Simulator]:
    made = Simulator(8, 4, Costs().without_sharing())
    yield made
    made.close()


def play(simulator: Simulator, fen: str, seconds: float) -> tuple[int, float, int, int]:
    found = simulator.play(chess.Board(fen), seconds, SearchOptions())
    return found.nodes, found.seconds, found.depth, found.bestmove


@pytest.mark.parametrize("limit", [MILLISECOND, 10 * MILLISECOND])
def test_time_is_kept_to_within_some_nodes(eight_workers: Simulator, limit: float) -> None:
    eight_workers.forget()
    nodes, seconds, depth, _ = play(eight_workers, MIDDLE_GAME, limit)
    assert limit <= seconds < limit + 0.2 * MILLISECOND
    assert depth > 1 and 0.5 * 8 * limit < Costs().seconds_of(nodes) <= 8 * seconds * 1.1


def test_no_worker_searches_on_after_the_answer(eight_workers: Simulator) -> None:
    eight_workers.forget()
    play(eight_workers, MIDDLE_GAME, 5 * MILLISECOND)
    assert eight_workers.arena.header[0]["idle_workers"] == 8
    assert (eight_workers.arena.stack["state"] == 0).all() and not eight_workers.arena.stack["open_mask"].any()


def test_the_table_is_kept_until_it_is_to_be_forgotten(eight_workers: Simulator) -> None:
    eight_workers.forget()
    first = play(eight_workers, MIDDLE_GAME, 5 * MILLISECOND)
    later = [play(eight_workers, MIDDLE_GAME, 5 * MILLISECOND) for _ in range(24)]
    eight_workers.forget()
    assert play(eight_workers, MIDDLE_GAME, 5 * MILLISECOND) == first
    assert later[-1][2] > first[2], "what was found before need not be searched again"


def test_a_search_to_a_depth_has_no_deadline(eight_workers: Simulator) -> None:
    before = eight_workers.search("", chess.Board(MIDDLE_GAME), 8, SearchOptions())
    play(eight_workers, MIDDLE_GAME, MILLISECOND)
    assert eight_workers.search("", chess.Board(MIDDLE_GAME), 8, SearchOptions()) == before


def test_the_only_move_is_played_at_once(eight_workers: Simulator) -> None:
    nodes, _, depth, _ = play(eight_workers, ONE_MOVE, 1.0)
    assert depth == 1 and nodes < 100
