"""The scheduler without chess: `step` searches an artificial tree, whose values and counts are known beforehand."""

from __future__ import annotations

import itertools
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from artificial_tree import (
    ARTIFICIAL,
    Serial,
    Shape,
    begin_virtual,
    minimax,
    root_of,
    run_interleaved,
    run_virtual,
    set_up,
    step_worker,
    swing_of,
)
from paths import SUPPORT

from psearch.arena import setup
from psearch.arena.arena import Arena
from psearch.arena.validate import describe, leftovers, violations
from psearch.defaults import POLICY_NAMES
from psearch.lab.studies.uniform_tree import count_uniform, least_leaves
from psearch.options import SearchOptions
from psearch.scheduler.scheduler_entries import merge_now, request_stop
from psearch.simulation.costs import Costs
from psearch_core.constants import ALL_NODE, BOUND_EXACT, CUT_NODE, PV_NODE
from psearch_core.records import lock_dtype, simulation_dtype
from psearch_core.toolchain import groups
from psearch_core.toolchain.jit import CHECK

WORKERS = (1, 2, 3, 8, 64)
MAX_TURNS = 20_000_000
JITTER = replace(Costs(), jitter=1.0)

PERFECT = (Shape(2, 9), Shape(4, 7, seed=2), Shape(8, 5, seed=3), Shape(40, 3, seed=4))
CAREFUL = ("root", "ybw", "knuth", "garms", "kannan", "felten")
"""Policies that open no node of a perfect tree which is cut off later: they search the least tree and no node more."""
SPLITTING = tuple(name for name in POLICY_NAMES if name not in ("serial", "lazy", "abdada"))

ROUGH = Shape(6, 5, spread=3, disorder=True)
CHESSLIKE = Shape(6, 6, spread=3, disorder=True, reduce=True, null=True, noise=True, prune=True)
SWINGING = Shape(4, 7, spread=2, disorder=True, reduce=True, null=True, noise=True, swing=90)
IRREGULAR = (ROUGH, CHESSLIKE, SWINGING)


@pytest.fixture(scope="module", autouse=True)
def kernels() -> None:
    groups.load(ARTIFICIAL)


@pytest.fixture(scope="module")
def arenas() -> Iterator[dict[int, Arena]]:
    made = {workers: Arena(workers, 1) for workers in WORKERS}
    yield made
    for arena in made.values():
        arena.close()


def options(policy: str, table: bool = False, aspiration: int = 0) -> SearchOptions:
    return replace(SearchOptions.plain(policy, split_depth=1), tt=table, aspiration=aspiration)


def run(arena: Arena, shape: Shape, how: SearchOptions, seed: int = 1, burst: int = 20) -> int:
    """Search from nothing in one order of transitions; the value, after looking at everything else that was found."""
    arena.forget()
    set_up(arena, shape, how)
    assert run_interleaved(arena.context, seed, burst, MAX_TURNS) >= 0, "hang\n" + describe(arena)
    check_end(arena, shape)
    return int(arena.header[0]["score"])


def check_end(arena: Arena, shape: Shape) -> None:
    """Nothing is left behind, and every move of the line reported last is a best one."""
    assert leftovers(arena) == []
    assert not arena.header[0]["claims"].any()
    assert total(arena, "parks") == total(arena, "adopts")
    header = arena.header[0]
    info = header["infos"][(int(header["info_count"]) - 1) % len(header["infos"])]
    place = root_of(shape)
    assert int(info["pv_length"]) > 0 and int(info["pv"][0]) == int(header["best_move"])
    for move in info["pv"][: int(info["pv_length"])]:
        following = place.after(int(move))
        assert following.value == -place.value
        place = following


def total(arena: Arena, counter: str) -> int:
    counters = arena.worker if counter == "nodes" else arena.worker["counters"]
    return int(counters[counter].sum())


def value_of(shape: Shape) -> int:
    return root_of(shape).value + swing_of(shape, shape.depth)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("shape", [Shape(3, 5), replace(ROUGH, depth=4), replace(SWINGING, depth=4)])
def test_values_are_those_of_minimax(shape: Shape, seed: int) -> None:
    shape = replace(shape, seed=seed)
    assert minimax(root_of(shape), shape.depth, swing_of(shape, shape.depth)) == value_of(shape)


@pytest.mark.parametrize("shape", [*PERFECT, *IRREGULAR])
def test_the_recursion_finds_the_value(shape: Shape) -> None:
    assert Serial(shape).value == value_of(shape)


@pytest.mark.parametrize("shape", PERFECT)
def test_the_recursion_visits_the_least_tree(shape: Shape) -> None:
    counts = [list(count_uniform(shape.breadth, depth))[-1] for depth in range(1, shape.depth + 1)]
    twin = Serial(shape)
    assert twin.nodes == sum(count.nodes for count in counts)
    assert twin.qnodes == sum(count.leaves.total for count in counts)
    assert sum(least_leaves(shape.breadth, depth).total for depth in range(1, shape.depth + 1)) == twin.qnodes


@pytest.mark.parametrize("aspiration", [0, 25])
@pytest.mark.parametrize("shape", [*PERFECT, *IRREGULAR])
def test_one_worker_is_the_recursion(arenas: dict[int, Arena], shape: Shape, aspiration: int) -> None:
    """It visits the same nodes, whatever the policy: an open node that nobody joins is like any other."""
    for seed in (1, 2, 3):
        shape = replace(shape, seed=seed)
        twin = Serial(shape, aspiration)
        for policy in POLICY_NAMES:
            assert run(arenas[1], shape, options(policy, aspiration=aspiration), seed) == twin.value
            found = (total(arenas[1], "nodes"), total(arenas[1], "qnodes"))
            assert found == (twin.nodes, twin.qnodes), (policy, seed)
            assert (total(arenas[1], "opens") > 0) == (policy in SPLITTING)


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("shape", PERFECT)
def test_a_perfect_tree_is_searched_without_a_wasted_node(arenas: dict[int, Arena], shape: Shape, workers: int) -> None:
    """The types are right there, so nothing is opened that is cut off: any number of workers visits the least tree."""
    twin = Serial(shape)
    joins = 0
    for seed, policy in itertools.product((1, 2, 3), CAREFUL):
        assert run(arenas[workers], shape, options(policy), seed, burst=1 + 9 * seed) == twin.value
        assert (total(arenas[workers], "nodes"), total(arenas[workers], "qnodes")) == (twin.nodes, twin.qnodes), policy
        assert total(arenas[workers], "aborts") == total(arenas[workers], "aborted_nodes") == 0
        joins += total(arenas[workers], "joins")
    assert joins > 18 or workers == 1


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("policy", ["knuth", "kannan"])
def test_nodes_of_each_type_are_counted(arenas: dict[int, Arena], policy: str, workers: int) -> None:
    """Each inner node once, by whoever finished it; CUT nodes have cut and ALL nodes have not."""
    shape = PERFECT[1]
    run(arenas[workers], shape, replace(options(policy), record=True))
    merge_now(arenas[workers].context)
    prediction = arenas[workers].header[0]["prediction"]
    seen, cut = (prediction[name][..., 0].sum(axis=(1, 2)) for name in ("all_seen", "all_cut"))
    levels = [least_leaves(shape.breadth, level) for depth in range(1, shape.depth + 1) for level in range(depth)]
    assert seen[PV_NODE] == sum(level.pv for level in levels)
    assert seen[CUT_NODE] == cut[CUT_NODE] == sum(level.cut for level in levels)
    assert seen[ALL_NODE] == sum(level.all for level in levels)
    assert cut[PV_NODE] == cut[ALL_NODE] == 0


@pytest.mark.parametrize("table", [False, True], ids=["alone", "with table"])
@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("policy", POLICY_NAMES)
def test_every_order_of_transitions_finds_the_value(
    arenas: dict[int, Arena], policy: str, workers: int, table: bool
) -> None:
    joins = aborts = 0
    for seed in range(12):
        shape = replace((ROUGH, CHESSLIKE)[seed % 2], seed=seed)
        how = replace(options(policy, table), split_depth=1 + seed % 3 // 2, wait=seed % 4 == 3)
        if seed % 3 == 0 and workers > 1 and policy not in ("serial", "lazy"):
            how = replace(how, defer_depth=2)
        assert run(arenas[workers], shape, how, seed, burst=(1, 7, 50)[seed % 3]) == value_of(shape), seed
        joins += total(arenas[workers], "joins")
        aborts += total(arenas[workers], "aborts")
    if workers > 1 and policy in SPLITTING:
        assert joins > 50
        assert aborts > 10 or workers == 2 or policy == "root" or table


@pytest.mark.parametrize("aspiration", [0, 25])
@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("policy", POLICY_NAMES)
def test_iterations_that_miss_their_window(
    arenas: dict[int, Arena], policy: str, workers: int, aspiration: int
) -> None:
    for seed in range(4):
        shape = replace(SWINGING, seed=seed)
        assert run(arenas[workers], shape, options(policy, aspiration=aspiration), seed) == value_of(shape)
    header = arenas[workers].header[0]
    bounds = {int(info["bound"]) for info in header["infos"][: int(header["info_count"])]}
    assert len(bounds) == (3 if aspiration else 1), "it failed high, and low"


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize(
    ("policy", "table"),
    # with Lazy SMP the table has results of roots that go on past the depth: there this tree has other values
    [(policy, table) for policy in POLICY_NAMES for table in (False, True) if (policy, table) != ("lazy", True)],
)
def test_null_windows_meet_at_the_value(
    arenas: dict[int, Arena], policy: str, workers: int, table: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(setup, "PROVED_DEPTH", 2)
    arena = arenas[workers]
    for seed in range(6):
        shape = replace((SWINGING, ROUGH, CHESSLIKE)[seed % 3], seed=seed)
        how = replace(options(policy, table), driver="null")
        assert run(arena, shape, how, seed, burst=(1, 7, 50)[seed % 3]) == value_of(shape), seed
        root, header = arena.stack[0], arena.header[0]
        assert root["root_beta"] - root["root_alpha"] == 1
        assert root["root_low"] == root["root_high"] == header["score"]
        exact = header["infos"][: int(header["info_count"])]["bound"] == BOUND_EXACT
        assert int(exact.sum()) == header["depth"] == shape.depth


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("policy", POLICY_NAMES)
def test_lines(arenas: dict[int, Arena], policy: str, workers: int) -> None:
    arena, shape = arenas[workers], CHESSLIKE
    arena.forget()
    set_up(arena, shape, options(policy), multipv=3)
    assert run_interleaved(arena.context, 1, 20, MAX_TURNS) >= 0
    children = sorted(root_of(shape).after(move).value for move in range(1, root_of(shape).breadth + 1))
    assert arena.header[0]["line_scores"][:3].tolist() == [-value for value in children[:3]]
    assert leftovers(arena) == []


@pytest.mark.parametrize("workers", [2, 3, 8, 64])
@pytest.mark.parametrize("policy", POLICY_NAMES)
def test_invariants_hold_after_every_step(arenas: dict[int, Arena], policy: str, workers: int) -> None:
    arena = arenas[workers]
    rng = random.Random(workers)
    for shape, how in ((CHESSLIKE, options(policy, table=True)), (replace(ROUGH, depth=7), options(policy))):
        arena.forget()
        set_up(arena, shape, how if policy in ("serial", "lazy") else replace(how, defer_depth=2))
        for _ in range(500 if workers < 64 else 80):
            for _ in range(1 if workers < 64 else 40):
                step_worker(arena.context, rng.randrange(workers), rng.choice((1, 1, 2, 40)))
            assert violations(arena) == [], describe(arena)
        assert run_interleaved(arena.context, 1, 5, MAX_TURNS) >= 0
        check_end(arena, shape)
    assert policy not in SPLITTING or total(arena, "aborts") > 0 or policy == "root"


def test_a_stop_after_any_step_leaves_nothing_behind(arenas: dict[int, Arena]) -> None:
    stopped = 0
    for turns in range(1, 400):
        for workers in (2, 8):
            arena = arenas[workers]
            set_up(arena, replace(CHESSLIKE, seed=turns), options(SPLITTING[turns % len(SPLITTING)]))
            if run_interleaved(arena.context, turns, 9, turns) < 0:
                stopped += 1
                request_stop(arena.context)
                assert run_interleaved(arena.context, turns, 3, MAX_TURNS) >= 0, describe(arena)
            assert leftovers(arena) == []
            assert 1 <= int(arena.header[0]["best_move"]) <= CHESSLIKE.breadth
    assert stopped > 300


@pytest.mark.parametrize("stacks", [1, 2, 3, 5])
def test_fewer_stacks_than_workers(stacks: int) -> None:
    arena = Arena(8, 1, stacks=stacks)
    for seed, policy in enumerate(SPLITTING):
        assert run(arena, CHESSLIKE, options(policy), seed) == value_of(CHESSLIKE)
        assert total(arena, "joins") > 0 or stacks == 1
    arena.close()


BREAK = """
import sys
sys.path.insert(0, {support!r})
from artificial_tree import Shape, run_interleaved, set_up, step_worker
from psearch.arena.arena import Arena
from psearch.options import SearchOptions

arena = Arena(2, 1)
set_up(arena, Shape(8, 5), SearchOptions.plain("garms", 1))
while not arena.worker["counters"]["joins"].any():
    step_worker(arena.context, 0, 1)
    step_worker(arena.context, 1, 1)
node, worker = arena.frames["node"], arena.worker
{what}
run_interleaved(arena.context, 1, 20, 10**6)
"""


@pytest.mark.skipif(not CHECK, reason="only a build with PSEARCH_CHECK=1 has assertions")
@pytest.mark.parametrize(
    ("what", "message"),
    [
        ('node["inside"] = 0', "who leaves a node was inside"),
        ('node["closed"][node["open"] == 1] = 3', "a node is not closed, cut off or aborted"),
        ('worker["stack"] = 99', "a stack is one of the pool"),
        ('worker["locks"] = 1', "no lock is held between two transitions"),
        ('node["p_needed"] = 1 << 17; worker["state"] = 2', "is a probability"),
        ('arena.frames["visit"]["shared"] = 1; arena.frames["visit"]["p_needed"] = -1', "is a probability"),
    ],
)
def test_a_build_with_checks_notices_a_broken_arena(what: str, message: str) -> None:
    program = BREAK.format(support=str(SUPPORT), what=what)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == -signal.SIGABRT, done.stderr
    assert done.stderr.startswith("psearch: check failed: ") and message in done.stderr


def simulate(arena: Arena, shape: Shape, how: SearchOptions, costs: Costs, seed: int, events: int = 1 << 20) -> int:
    """Search in virtual time, in so many events at once; gives the time that it took."""
    arena.forget()
    set_up(arena, shape, replace(how, join_cost=costs.join_in_nodes))
    simulation = np.zeros(1, simulation_dtype)
    costs.write(simulation[0], arena.stacks)
    simulation["random"] = seed
    locks = np.zeros(len(arena.frames), lock_dtype)
    begin_virtual(arena.context, simulation.ctypes.data)
    done = 0
    while done == 0:
        done = run_virtual(arena.context, simulation.ctypes.data, locks.ctypes.data, events, 0)
        assert events > 1 or violations(arena) == [], describe(arena)
    assert done == 1, "everybody sleeps\n" + describe(arena)
    check_end(arena, shape)
    return int(simulation[0]["now"])


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("policy", POLICY_NAMES)
def test_virtual_time(arenas: dict[int, Arena], policy: str, workers: int) -> None:
    arena = arenas[workers]
    for seed in range(6):
        shape = replace((ROUGH, CHESSLIKE, SWINGING)[seed % 3], seed=seed)
        simulate(arena, shape, options(policy, table=seed == 4), JITTER, seed)
        assert int(arena.header[0]["score"]) == value_of(shape)
        if policy in CAREFUL:
            twin = Serial(PERFECT[seed % 4])
            simulate(arena, PERFECT[seed % 4], options(policy), JITTER, seed)
            assert (total(arena, "nodes"), total(arena, "qnodes")) == (twin.nodes, twin.qnodes)


@pytest.mark.parametrize("workers", [2, 8, 64])
@pytest.mark.parametrize("policy", SPLITTING)
def test_virtual_time_is_the_same_twice(arenas: dict[int, Arena], policy: str, workers: int) -> None:
    found = set()
    for _ in range(2):
        time = simulate(arenas[workers], CHESSLIKE, options(policy, table=True), Costs(), 0)
        found.add((time, *arenas[workers].worker["nodes"].tolist()))
    assert len(found) == 1


@pytest.mark.parametrize("policy", POLICY_NAMES)
def test_invariants_hold_after_every_event(arenas: dict[int, Arena], policy: str) -> None:
    simulate(arenas[3], replace(CHESSLIKE, depth=4), options(policy), JITTER, 1, events=1)


def test_many_workers_take_less_time(arenas: dict[int, Arena]) -> None:
    """A perfect tree of a thousand leaves, opened where nothing is cut off."""
    shape, how = Shape(32, 4), options("garms")
    costs = Costs().without_sharing()  # a worker has sixteen leaves here
    times = [simulate(arenas[workers], shape, how, costs, 0) for workers in (1, 2, 8, 64)]
    assert times[0] > 1.8 * times[1] > 1.8 * 3 * times[2] > times[3]
