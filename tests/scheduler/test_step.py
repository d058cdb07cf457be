"""The machine with several workers in one process: every interleaving must find the value of naive negamax."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import chess
import kernel_mutations
import numpy as np
import pytest
from naive import NaiveSearch
from paths import DATA, SUPPORT, TESTS
from preemptive import group_of, hunt
from round_robin_entries import run_interleaved, step_worker

from psearch.arena import setup
from psearch.arena.arena import Arena
from psearch.arena.setup import write_search
from psearch.arena.validate import describe, leftovers, violations
from psearch.defaults import POLICY_NAMES
from psearch.options import SearchOptions
from psearch.results import Limits
from psearch.scheduler.scheduler_entries import is_done, reports_written, request_stop
from psearch_core.chess.board.bridge import to_chess_move
from psearch_core.records.pruning_record import MODES
from psearch_core.toolchain import groups
from psearch_core.toolchain.groups import Group
from psearch_core.toolchain.jit import CHECK

WORKERS = (2, 3, 8)
MAX_TURNS = 20_000_000
MIDDLE_GAME = "r1bq1rk1/pp3ppp/2n1pn2/3p4/3P4/2PBPN2/P4PPP/R1BQ1RK1 w - - 0 10"
NAIVE_BUDGET = 1_000_000
"""Nodes the naive twin may take: decides how deep each position is compared."""
SPLITTING = [name for name in POLICY_NAMES if name != "serial"]


def positions() -> list[str]:
    """Middle games, endings, stalemate tricks: a few hundred."""
    return [
        line.split(";")[0].strip()
        for line in (DATA / "search" / "plain_positions.epd").read_text().splitlines()
        if line and not line.startswith("#")
    ]


pytestmark = pytest.mark.usefixtures("search_kernels")


@pytest.fixture(scope="module")
def arenas() -> dict[int, Arena]:
    return {workers: Arena(workers, 1) for workers in (1, *WORKERS, 64)}


def run(arena: Arena, board: chess.Board, depth: int, options: SearchOptions, seed: int, burst: int = 20) -> int:
    """The root value under one interleaving; fails with a picture of the arena if the search hangs."""
    write_search(arena, board, Limits(depth=depth), options)
    assert run_interleaved(arena.context, seed, burst, MAX_TURNS) >= 0, "hang\n" + describe(arena)
    assert leftovers(arena) == []
    return int(arena.header[0]["score"])


@pytest.mark.parametrize("part", range(8))
def test_plain_mode_equals_naive_negamax(part: int, arenas: dict[int, Arena]) -> None:
    rng = random.Random(part)
    twin = NaiveSearch(arenas[1].tables, max_nodes=NAIVE_BUDGET)
    compared = joins = 0
    for fen in positions()[part::8]:
        board = chess.Board(fen)
        for depth in (1, 2, 3, 4):
            expected = twin.value(board, depth)
            if expected is None:
                break
            for workers in WORKERS:
                policy = rng.choice(SPLITTING)
                seed = rng.getrandbits(62)
                options = SearchOptions.plain(policy, split_depth=rng.choice((1, 2)))
                value = run(arenas[workers], board, depth, options, seed, burst=rng.choice((1, 7, 50)))
                assert value == expected, (fen, depth, workers, policy, seed)
                compared += 1
                joins += int(arenas[workers].worker["counters"]["joins"].sum())
    assert compared >= 60
    assert joins > 10 * compared


def test_pruned_and_unpruned_twins_agree(arenas: dict[int, Arena]) -> None:
    """The twin itself: alpha-beta against no pruning at all."""
    cut = NaiveSearch(arenas[1].tables)
    full = NaiveSearch(arenas[1].tables, prune=False, max_nodes=300_000)
    compared = 0
    for fen in positions()[::5]:
        board = chess.Board(fen)
        for depth in (1, 2):
            expected = full.value(board, depth)
            if expected is not None:
                assert cut.value(board, depth) == expected, (fen, depth)
                compared += 1
    assert compared >= 20


def test_many_interleavings_of_few_positions(arenas: dict[int, Arena]) -> None:
    twin = NaiveSearch(arenas[1].tables)
    for fen in positions()[:6]:
        board = chess.Board(fen)
        expected = twin.value(board, 2)
        for workers in (2, 3, 8, 64):
            for seed in range(25):
                policy = SPLITTING[seed % len(SPLITTING)]
                value = run(arenas[workers], board, 2, SearchOptions.plain(policy, 1), seed, burst=1 + seed % 9)
                assert value == expected, (fen, workers, policy, seed)


@pytest.mark.slow
def test_invariants_hold_after_every_step(arenas: dict[int, Arena]) -> None:
    arena = arenas[3]
    rng = random.Random(5)
    board = chess.Board("r1bqkb1r/pp2pppp/2np1n2/8/3NP3/2N5/PPP2PPP/R1BQKB1R w KQkq - 2 6")
    joined = 0
    for policy in SPLITTING:
        for workers in (3, 8):
            arena = arenas[workers]
            write_search(arena, board, Limits(depth=4), SearchOptions.plain(policy, 1))
            for _ in range(3000):
                step_worker(arena.context, rng.randrange(workers), rng.choice((1, 1, 2, 40)))
                assert violations(arena) == [], describe(arena)
            joined += int(arena.worker["counters"]["joins"].sum())
            stop(arena)
            assert run_interleaved(arena.context, 1, 5, MAX_TURNS) >= 0
            assert leftovers(arena) == []
    assert joined > 200


@pytest.mark.parametrize(("mode", "depth"), [("ael", 6), ("modern", 9)])
def test_selective_search_with_many_workers_keeps_invariants(arenas: dict[int, Arena], mode: str, depth: int) -> None:
    """Null moves, table cutoffs and cutoffs above: aborts happen, and nobody is left behind."""
    board = chess.Board("r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1")
    aborts = 0
    for workers in (2, 8, 64):
        arena = arenas[workers]
        for seed, policy in enumerate(SPLITTING):
            arena.clear_table()
            run(arena, board, depth, SearchOptions(policy=policy, split_depth=2, pruning=MODES[mode]), seed)
            aborts += int(arena.worker["counters"]["aborts"].sum())
            assert int(arena.worker["counters"]["adopts"].sum()) == int(arena.worker["counters"]["parks"].sum())
    assert aborts > 100


def stop(arena: Arena) -> None:
    request_stop(arena.context)


def table_entries(arena: Arena) -> set[tuple[int, int]]:
    return {(int(a), int(b)) for a, b in arena.tt.reshape(-1, 2)[arena.tt.reshape(-1, 2).any(axis=1)]}


def test_stop_at_every_step_leaves_nothing_behind(arenas: dict[int, Arena]) -> None:
    arena = arenas[3]
    board = chess.Board(MIDDLE_GAME)
    legal = set(board.legal_moves)
    for turns in range(1, 600):
        write_search(arena, board, Limits(depth=5), SearchOptions(split_depth=1))
        if run_interleaved(arena.context, turns, 9, turns) >= 0:
            continue
        stop(arena)
        assert run_interleaved(arena.context, turns, 3, MAX_TURNS) >= 0, describe(arena)
        assert leftovers(arena) == []
        assert to_chess_move(int(arena.header[0]["best_move"]), board) in legal


def test_nothing_is_stored_from_a_search_cut_short() -> None:
    """A stopped search stores only nodes that it has completed: the search without the stop stores them, too."""
    arena = Arena(1, 1)
    board = chess.Board(MIDDLE_GAME)
    stored_late = 0
    for transitions in range(200, 6000, 97):
        written: list[set[tuple[int, int]]] = []
        for stopped in (False, True):
            arena.forget()
            arena.header["age"] = 0
            write_search(arena, board, Limits(depth=5), SearchOptions(split_depth=1))
            step_worker(arena.context, 0, transitions)
            before = table_entries(arena)
            if stopped:
                stop(arena)
                assert run_interleaved(arena.context, 1, 3, MAX_TURNS) >= 0
                written.append(table_entries(arena) - before)
            else:
                later: set[tuple[int, int]] = set()
                seen = arena.tt.copy()
                for _ in range(100):
                    step_worker(arena.context, 0, 1)
                    if not np.array_equal(arena.tt, seen):
                        later |= table_entries(arena)
                        seen[:] = arena.tt
                written.append(later - before)
                stop(arena)
                run_interleaved(arena.context, 1, 3, MAX_TURNS)
        assert written[1] <= written[0], transitions
        stored_late += len(written[1])
    assert stored_late > 0  # else this test would see nothing
    arena.close()


def test_stack_pool_exhausted(arenas: dict[int, Arena]) -> None:
    """Fewer stacks than workers: those without one stay idle, and the value is still right."""
    twin = NaiveSearch(arenas[1].tables)
    board = chess.Board("r1bqkb1r/pp2pppp/2np1n2/8/3NP3/2N5/PPP2PPP/R1BQKB1R w KQkq - 2 6")
    expected = twin.value(board, 3)
    for stacks in (1, 2, 3, 5):
        arena = Arena(8, 1, stacks=stacks)
        for seed in range(5):
            assert run(arena, board, 3, SearchOptions.plain("knuth", 1), seed) == expected
            # with a handful of stacks some look for a free one must have failed
            assert int(arena.worker["counters"]["polls"].sum()) > 0
        assert int(arena.worker["counters"]["joins"].sum()) > 0 or stacks == 1
        arena.close()


@pytest.mark.parametrize(("mode", "depth"), [("plain", 4), ("ael", 6), ("modern", 8)])
def test_one_worker_with_splitting_equals_the_serial_search(arenas: dict[int, Arena], mode: str, depth: int) -> None:
    """Opening nodes that nobody joins changes nothing, to the node, in every mode."""
    arena = arenas[1]
    for fen in positions()[::20]:
        board = chess.Board(fen)
        counts = set()
        for policy in POLICY_NAMES:
            arena.forget()
            run(arena, board, depth, SearchOptions(policy=policy, split_depth=1, pruning=MODES[mode]), 0)
            counts.add((int(arena.worker[0]["nodes"]), int(arena.header[0]["score"])))
        assert len(counts) == 1, (fen, counts)


def test_same_seed_same_tree(arenas: dict[int, Arena]) -> None:
    arena = arenas[8]
    board = chess.Board(MIDDLE_GAME)
    seen = set()
    for _ in range(3):
        arena.forget()
        run(arena, board, 6, SearchOptions(), 42)
        seen.add(tuple(arena.worker["nodes"].tolist()))
    assert len(seen) == 1
    arena.forget()
    run(arena, board, 6, SearchOptions(), 43)
    assert tuple(arena.worker["nodes"].tolist()) not in seen


def test_a_search_that_hangs_can_be_described(arenas: dict[int, Arena]) -> None:
    arena = arenas[3]
    write_search(arena, chess.Board(MIDDLE_GAME), Limits(depth=11), SearchOptions())
    text = ""
    while not ("joins=1 " in text and "stack 0: active " in text and "node 0 (ply 0): " in text):
        assert run_interleaved(arena.context, 1, 5, 10) == -1
        text = describe(arena)
    request_stop(arena.context)
    assert run_interleaved(arena.context, 1, 20, MAX_TURNS) >= 0
    assert text.startswith("header: stop=0 ")
    assert all(f"worker {number}: " in text for number in range(3)) and "joins=1 " in text
    assert "stack 0: active home=-1 " in text and "node 0 (ply 0): lock=0 closed=0 " in text


def test_what_is_read_of_a_running_search(arenas: dict[int, Arena]) -> None:
    arena = arenas[3]
    write_search(arena, chess.Board(), Limits(depth=4), SearchOptions())
    seen = set()
    while not is_done(arena.context):
        seen.add(reports_written(arena.context))
        step_worker(arena.context, random.randrange(3), 50)
    assert seen >= {0, 1, 2}
    assert reports_written(arena.context) == int(arena.header[0]["info_count"]) >= 4
    assert leftovers(arena) == []


PREEMPTIVE = group_of("unchanged", {})
SEARCHES = 400
"""Number of searches for each mutation: they find all of them, most in the first few."""


@pytest.mark.parametrize("driver", ["pvs", "null"])
def test_nothing_is_wrong_in_any_order(driver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup, "PROVED_DEPTH", 1)  # these trees are low
    assert hunt(PREEMPTIVE, range(120), driver) == ""


@pytest.mark.slow
@pytest.mark.parametrize("driver", ["pvs", "null"])
def test_nothing_is_wrong_in_many_orders(driver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup, "PROVED_DEPTH", 1)
    assert hunt(PREEMPTIVE, range(120, 3000), driver) == ""


def test_every_mutation_of_the_model_has_a_twin_here() -> None:
    sys.path.insert(0, str(TESTS / "model"))
    try:
        import mutations
    finally:
        sys.path.remove(str(TESTS / "model"))
    named = {name for number, name in mutations.NAMES.items() if number and number not in mutations.HARMLESS}
    assert named == set(kernel_mutations.MUTATIONS) | set(kernel_mutations.ONLY_IN_THE_MODEL)


@pytest.mark.parametrize("name", kernel_mutations.MUTATIONS)
def test_a_mutation_fits_the_source(name: str) -> None:
    """Whether it is noticed takes minutes; that it still says what it changes is seen at once."""
    for source in kernel_mutations.changed_sources(name).values():
        compile(source, name, "exec")


@pytest.fixture(scope="module")
def mutated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mutated")
    sys.path.insert(0, str(folder))
    made: dict[str, Group] = kernel_mutations.groups(folder, kernel_mutations.MUTATIONS)
    groups.load(*made.values())
    sys.path.remove(str(folder))
    return folder


@pytest.mark.slow
@pytest.mark.skipif(CHECK, reason="done by the build without checks")
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", kernel_mutations.MUTATIONS)
def test_a_mutation_is_noticed(mutated: Path, name: str) -> None:
    """In a process of its own: it may end with a bad access to memory as well."""
    checks = {"PSEARCH_CHECK": "1"} if name in kernel_mutations.NEEDS_CHECKS else {}
    program = [sys.executable, str(SUPPORT / "kernel_mutations.py"), str(mutated), name, str(SEARCHES)]
    done = subprocess.run(program, env={**os.environ, **checks}, capture_output=True, text=True, timeout=900)
    assert done.returncode != 0, done.stdout
    assert done.returncode < 0 or "Traceback" not in done.stderr, done.stderr
