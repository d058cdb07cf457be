"""Roots: the windows of an iteration, whatever its searches answer; and the vote of several roots on the answer."""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import chess
import pytest
from inspect_entries import INSPECT
from inspect_node import Answers, RootProbe, elect
from positions import KIWIPETE
from round_robin_entries import ROUND_ROBIN, run_interleaved

from psearch.arena import setup
from psearch.arena.arena import Arena
from psearch.arena.setup import write_search
from psearch.arena.validate import describe, leftovers
from psearch.options import SearchOptions
from psearch.processes.request import SearchRequest
from psearch.processes.search_reports import to_score
from psearch.processes.supervisor import Supervisor
from psearch.results import Info, Limits
from psearch.scheduler.scheduler_entries import is_done, load_kernels, request_stop
from psearch.simulation.costs import Costs
from psearch.simulation.simulator import Simulator
from psearch_core.chess.board.bridge import to_chess_move
from psearch_core.constants import (
    BOUND_EXACT,
    BOUND_LOWER,
    BOUND_UPPER,
    INFINITE,
    MATE,
    MATE_IN_MAX_PLY,
    STATE_ENTER,
    STATE_ROOT,
)
from psearch_core.records.pruning_record import MODES
from psearch_core.toolchain import groups
from psearch_core.toolchain.jit import CHECK


@dataclass(frozen=True)
class Voter:
    move: int
    score: int
    depth: int
    """Depth of its last finished iteration; 0 if there is none."""
    bound: int
    length: int = 1
    """Length of the line."""

    @property
    def gives_mate(self) -> bool:
        return self.score >= MATE_IN_MAX_PLY and self.bound != BOUND_UPPER

    @property
    def is_mated(self) -> bool:
        return self.score <= -MATE_IN_MAX_PLY and self.bound != BOUND_LOWER


def voters_of(arena: Arena) -> list[Voter]:
    roots = arena.stack[: int(arena.header[0]["first_roots"])]
    return [
        Voter(*(int(answer["pv"][0]), int(answer["score"]), int(depth), int(answer["bound"]), int(answer["pv_length"])))
        for answer, depth in zip(roots["answer"], roots["finished_depth"], strict=True)
    ]


def naive_election(voters: list[Voter]) -> int:
    """The number of the first of those that come before all others."""
    known = [voter for voter in voters if voter.depth]
    if not known:
        return 0
    if any(voter.gives_mate for voter in known):
        return voters.index(max((voter for voter in known if voter.gives_mate), key=lambda voter: voter.score))
    if any(voter.is_mated for voter in known):
        return voters.index(max((voter for voter in known if voter.is_mated), key=lambda voter: voter.depth))
    lowest = min(voter.score for voter in known)
    votes = {
        voter.move: sum(other.score - lowest + 6 for other in known if other.move == voter.move) for voter in known
    }
    return voters.index(max(known, key=lambda voter: (votes[voter.move], voter.length)))


POSITIONS = [
    chess.Board(fen)
    for fen in (
        "r1bq1rk1/pp3ppp/2n1pn2/3p4/3P4/2PBPN2/P4PPP/R1BQ1RK1 w - - 0 10",
        "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
        "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1",
        "2rr3k/pp3pp1/1nnqbN1p/3pN3/2pP4/2P3Q1/PPB4P/R4RK1 w - - 0 1",
    )
]
WORKERS = 8


@pytest.fixture(scope="module", autouse=True)
def kernels() -> None:
    load_kernels()
    groups.load(INSPECT)


@pytest.fixture(scope="module")
def arena() -> Iterator[Arena]:
    made = Arena(WORKERS, 1)
    yield made
    made.close()


@pytest.fixture(scope="module")
def simulator() -> Iterator[Simulator]:
    made = Simulator(WORKERS, 4, Costs())
    yield made
    made.close()


def election(arena: Arena, *voters: Voter) -> int:
    """Return the root that is elected among these, and roots that know nothing."""
    arena.header[0]["first_roots"] = WORKERS
    arena.stack["finished_depth"] = 0
    for root, voter in zip(arena.stack, voters, strict=False):
        root["finished_depth"] = voter.depth
        root["answer"]["pv"][0] = voter.move
        root["answer"]["pv_length"] = voter.length
        root["answer"]["score"] = voter.score
        root["answer"]["bound"] = voter.bound
    return int(elect(arena.context))


def said(move: int, score: int, depth: int, bound: int = BOUND_EXACT, length: int = 1) -> Voter:
    return Voter(move, score, depth, bound, length)


@pytest.mark.parametrize(
    ("voters", "winner"),
    [
        ([], 0),
        ([said(1, 0, 0), said(2, -50, 3)], 1),
        ([said(1, 20, 10), said(2, 20, 9), said(2, 20, 8)], 1),  # two against one; the first of the two
        ([said(1, 20, 10), said(2, 20, 9), said(2, 20, 8, length=3)], 2),  # the longer line of the two
        ([said(1, 20, 10), said(2, 20, 10)], 0),  # equal: the first
        ([said(1, 20, 10), said(2, 21, 10)], 1),
        ([said(1, 20, 20), said(2, 20, 9), said(2, 20, 9)], 1),  # depth has no say
        ([said(1, 20, 20), said(2, 40, 9)], 1),  # a higher score has
        ([said(1, 50, 9), said(2, MATE - 9, 5), said(3, MATE - 5, 4)], 2),  # the shortest mate
        ([said(1, 50, 9), said(2, MATE - 9, 5, BOUND_LOWER)], 1),
        ([said(1, 50, 9), said(1, 60, 8), said(2, 9 - MATE, 5), said(3, 7 - MATE, 6)], 3),  # mated: the deepest
        ([said(1, 50, 9), said(2, 9 - MATE, 5, BOUND_LOWER)], 0),  # another move may still do better
        ([said(1, 9 - MATE, 9), said(2, MATE - 9, 5)], 1),
    ],
)
def test_who_is_elected(arena: Arena, voters: list[Voter], winner: int) -> None:
    assert election(arena, *voters) == winner == naive_election([*voters, *[said(0, 0, 0)] * 8])


def test_any_votes(arena: Arena) -> None:
    dice = random.Random(1)
    bounds = (BOUND_EXACT, BOUND_LOWER, BOUND_UPPER)
    winners = set()
    for _ in range(3000):
        scores = [dice.randint(-3, 3) * 10, MATE - dice.randint(1, 4), dice.randint(1, 4) - MATE]
        voters = [
            Voter(
                *(dice.randint(1, 3), dice.choices(scores, (20, 1, 1))[0], dice.randint(0, 4), dice.choice(bounds)),
                length=dice.randint(1, 3),
            )
            for _ in range(WORKERS)
        ]
        winner = election(arena, *voters)
        assert winner == naive_election(voters), voters
        winners.add(winner)
    assert winners == set(range(WORKERS))


def check_answer(arena: Arena) -> int:
    """Check that what is reported last is what the elected root has shown; return its number."""
    header = arena.header[0]
    winner = naive_election(voters_of(arena))
    answer = arena.stack[winner]["answer"]
    assert header["best_move"] == answer["pv"][0]
    # where the main root's own answer stands, a last search of it that failed low changes nothing
    if winner or answer["bound"] != BOUND_UPPER:
        assert header["score"] == answer["score"]
    if winner:
        told = header["infos"][(int(header["info_count"]) - 1) % len(header["infos"])]
        for field in ("depth", "score", "bound", "pv_length", "line"):
            assert told[field] == answer[field], field
        length = int(answer["pv_length"])
        assert length >= 1 and (told["pv"][:length] == answer["pv"][:length]).all()
        assert told["nodes"] == arena.worker["nodes"].sum()
    return winner


@pytest.mark.parametrize("policy", ["lazy", "abdada"])
def test_in_virtual_time(simulator: Simulator, policy: str) -> None:
    winners = set()
    for board in POSITIONS:
        for milliseconds in (1, 2, 3, 4, 6):
            simulator.forget()
            found = simulator.play(board, milliseconds / 1000, SearchOptions(policy=policy))
            winners.add(check_answer(simulator.arena))
            header = simulator.arena.header[0]
            assert (found.bestmove, found.score) == (int(header["best_move"]), int(header["score"]))
            assert to_chess_move(found.bestmove, board) in board.legal_moves
            simulator.forget()
            assert simulator.play(board, milliseconds / 1000, SearchOptions(policy=policy)) == found
    assert len(winners) > 2, "other workers than the main one win votes"


@pytest.mark.parametrize("policy", ["lazy", "abdada"])
def test_in_any_order_of_transitions(arena: Arena, policy: str) -> None:
    winners = set()
    for seed in range(24):
        board = POSITIONS[seed % len(POSITIONS)]
        arena.forget()
        write_search(arena, board, Limits(), SearchOptions(policy=policy))
        assert run_interleaved(arena.context, seed, 20, 3000) < 0
        request_stop(arena.context)
        assert run_interleaved(arena.context, seed, 20, 1_000_000) >= 0
        assert leftovers(arena) == []
        if any(voter.depth for voter in voters_of(arena)):
            winners.add(check_answer(arena))
    assert len(winners) > 2


@pytest.mark.parametrize("policy", ["lazy", "calibrated"])
def test_no_vote_over_a_search_that_came_to_its_depth_or_has_one_root(simulator: Simulator, policy: str) -> None:
    """The main root decides when it has reached the depth that was asked for."""
    board = POSITIONS[0]
    found = simulator.search("", board, 6, SearchOptions(policy=policy))
    header = simulator.arena.header[0]
    told = header["infos"][(int(header["info_count"]) - 1) % len(header["infos"])]
    assert (int(told["depth"]), int(told["bound"])) == (6, BOUND_EXACT)
    assert (int(told["pv"][0]), int(told["score"])) == (found.bestmove, found.score)
    if policy == "calibrated":
        simulator.play(board, 0.002, SearchOptions(policy=policy))
        assert simulator.arena.header[0]["first_roots"] == 1


def test_one_worker_has_nobody_to_ask() -> None:
    made = Simulator(1, 4, Costs())
    for board in POSITIONS:
        answers = []
        for policy in ("serial", "lazy", "abdada"):
            made.forget()
            found = made.play(board, 0.003, SearchOptions(policy=policy))
            answers.append((found.bestmove, found.score, found.nodes, int(made.arena.header[0]["info_count"])))
        assert len(set(answers)) == 1
    made.close()


@pytest.mark.parametrize("policy", ["lazy", "abdada"])
@pytest.mark.parametrize("killed", [False, True], ids=["", "a worker killed"])
def test_in_processes(policy: str, killed: bool) -> None:
    """The answer is one worker's: move, score and line. New workers vote as those that were lost would have."""
    infos: list[Info] = []
    with Supervisor(3, 4) as engine:

        def take(info: Info) -> None:
            infos.append(info)
            if killed and info.depth >= 4 and not victims:
                victims.append(engine.pool.workers[1].pid)
                os.kill(victims[0], signal.SIGKILL)

        for board in POSITIONS:
            victims: list[int] = []
            infos.clear()
            limits = Limits(nodes=200_000 if killed else 60_000)
            result = engine.search(SearchRequest(board, limits, SearchOptions(policy=policy), on_info=take))
            assert bool(victims) == killed
            last = [info for info in infos if not info.is_live][-1]
            assert result.bestmove == result.info.pv[0] == last.pv[0]
            assert (result.info.score, result.info.depth) == (last.score, last.depth)
            was_over = any("the search was over" in note for note in result.notes)
            if was_over:  # lost at the very end: its root never voted, and the first worker's answer stands
                assert killed
                continue
            if any(voter.depth for voter in voters_of(engine.arena)):
                answer = engine.arena.stack[check_answer(engine.arena)]["answer"]
                assert result.bestmove == to_chess_move(int(answer["pv"][0]), board)
                assert result.info.score == to_score(int(answer["score"]), board.turn, int(answer["bound"]))


MOST_SEARCHES = 48
"""Root searches of an iteration: steps that double until they have crossed all scores, as many halvings, and one with
an open window."""
EDGES = (2 - MATE, -MATE_IN_MAX_PLY, 1 - MATE_IN_MAX_PLY, -1, 0, 1, MATE_IN_MAX_PLY - 1, MATE_IN_MAX_PLY, MATE - 1)
DRAUGHTY = "8/2k5/3p4/2p1p3/2P1P3/3P4/2K5/8 w - - 0 1"
"""Few captures, and enough moves for a value to swing."""


def searched(alpha: int, beta: int, value: int) -> int:
    """Return what a search makes of a root's value. A question beyond all scores is cut off by mate distance pruning at
    the first reply, and nothing is proved."""
    return -INFINITE if beta <= -MATE else value


def same(value: int) -> Answers:
    return lambda alpha, beta: searched(alpha, beta, value)


def anything(dice: random.Random) -> Answers:
    return lambda alpha, beta: dice.choice((dice.randint(2 - MATE, MATE - 1), dice.choice(EDGES)))


def one_value(dice: random.Random) -> Answers:
    return same(dice.choice((dice.randint(-31_000, 31_000), dice.choice(EDGES))))


def just_beyond(dice: random.Random) -> Answers:
    """The least that can be said: the window is missed by one, on either side."""
    return lambda alpha, beta: searched(alpha, beta, dice.choice((max(alpha, 2 - MATE), min(beta, MATE - 1))))


def always_less(dice: random.Random) -> Answers:
    return lambda alpha, beta: searched(alpha, beta, max(alpha, 2 - MATE))


def always_more(dice: random.Random) -> Answers:
    return lambda alpha, beta: searched(alpha, beta, min(beta, MATE - 1))


@pytest.mark.parametrize("driver", ["pvs", "null"])
@pytest.mark.parametrize("answers", [anything, one_value, just_beyond, always_less, always_more])
def test_an_iteration_ends_whatever_its_searches_answer(
    driver: str, answers: Callable[[random.Random], Answers], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(setup, "PROVED_DEPTH", 1)
    dice = random.Random(38)
    with contextlib.closing(RootProbe(driver)) as probe:
        for _ in range(2_000):
            last = dice.choice((dice.randint(-31_000, 31_000), dice.randint(-300, 300), dice.choice(EDGES)))
            windows = probe.iteration(last, answers(dice), MOST_SEARCHES + 1)
            assert len(windows) <= MOST_SEARCHES, (last, windows)
            for alpha, beta in windows:
                assert -INFINITE <= alpha < beta <= INFINITE


def test_null_windows_end_at_the_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every search gives the same value; mates are searched without a window."""
    monkeypatch.setattr(setup, "PROVED_DEPTH", 1)
    dice = random.Random(39)
    with contextlib.closing(RootProbe("null")) as probe:
        for _ in range(2_000):
            value = dice.choice((dice.randint(2 - MATE, MATE - 1), dice.choice(EDGES)))
            answers = same(value)
            windows = probe.iteration(dice.randint(-31_000, 31_000), answers, MOST_SEARCHES)
            assert probe.value == value, windows
            if abs(value) >= MATE_IN_MAX_PLY:
                assert windows[-1] == (-INFINITE, INFINITE)


SWINGS = """
import numpy as np
from psearch.own_rule import evaluation_of, i64, kernel, replaces, u64


@kernel(i64(u64))
def scattered(key):
    mixed = key * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    part = np.int64((mixed ^ mixed >> np.uint64(32)) % np.uint64(60001))
    return part * part * 62000 // 3600000000 - 31000


@replaces(evaluation_of)
def any_size(ctx, wk, pos):
    return scattered(pos.key)
"""


@pytest.fixture(scope="module")
def swings(tmp_path_factory: pytest.TempPathFactory) -> SearchOptions:
    """Evaluations from -31,000 to 31,000, seldom high: the value falls by 50,000 from one depth to the next."""
    file = tmp_path_factory.mktemp("rules") / "swings.py"
    file.write_text(SWINGS)
    return SearchOptions(with_=str(file), pruning=MODES["plain"])


def most_root_searches(arena: Arena, dice: random.Random) -> int:
    """Run a search to its end, a transition at a time; the most searches of the root at one depth."""
    step = arena.kernels.group(ROUND_ROBIN).entry("step_worker")
    most = searches = 0
    depth = 1
    for _ in range(3_000_000):
        if is_done(arena.context):
            assert leftovers(arena) == []
            return most
        index = dice.randrange(arena.workers)
        worker = arena.worker[index]
        at_root = worker["state"] == STATE_ROOT and worker["stack"] == 0
        step(arena.context, index, 1 if at_root else dice.choice((1, 7, 50)))
        if at_root and worker["state"] == STATE_ENTER:
            searches = searches + 1 if int(arena.header[0]["depth"]) == depth else 1
            depth = int(arena.header[0]["depth"])
            most = max(most, searches)
    pytest.fail("a search without end\n" + describe(arena))


@pytest.mark.parametrize("driver", ["pvs", "null"])
@pytest.mark.parametrize("workers", [1, 2, 3, 8])
def test_values_that_swing_take_few_searches(
    driver: str, workers: int, swings: SearchOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(setup, "PROVED_DEPTH", 1)
    dice = random.Random(workers)
    board = chess.Board(DRAUGHTY)
    fell = 0
    with contextlib.closing(Arena(workers, 1, kernels=swings.kernels)) as arena:
        for _ in range(12):
            scores = []
            for depth in (1, 2, 3, 4):
                options = replace(swings, driver=driver, policy=dice.choice(("calibrated", "lazy")))
                write_search(arena, board, Limits(depth=depth), options)
                assert most_root_searches(arena, dice) <= MOST_SEARCHES
                scores.append(int(arena.header[0]["score"]))
            fell += any(before - after > MATE for before, after in itertools.pairwise(scores))
            board.push(dice.choice(list(board.legal_moves)))
    assert fell, "no value falls by more than all scores are wide on one side"


HEAD = "from psearch.own_rule import *\n\n"
WRITERS = {
    "best": """
@replaces(prunes_move)
def mine(ctx, wk, pos, node, move):
    node.best = {}
    return {}
""",
    "value": """
@replaces(prune_node)
def mine(ctx, wk, pos, node, came_by):
    wk.value = {}
    return PRUNE_RETURN
""",
}
PASSES = """
@replaces(prune_node)
def mine(ctx, wk, pos, node, came_by):
    return {}
"""
RULES = [
    *(WRITERS["best"].format(value, answer) for value in (2_000_000_000, -2_000_000_000) for answer in (True, False)),
    *(WRITERS["value"].format(value) for value in (2_000_000_000, -2_000_000_000)),
    *(PASSES.format(answer) for answer in ("PRUNE_NULL", "PRUNE_RAZOR", "PRUNE_NULL if node.ply & 1 else PRUNE_RAZOR")),
]


@pytest.mark.slow
@pytest.mark.skipif(CHECK, reason="a build with checks ends at such a number, as it should")
@pytest.mark.parametrize("text", RULES)
def test_a_rule_that_writes_or_answers_anything_costs_no_search_its_end(text: str, tmp_path: Path) -> None:
    """Scores stay scores, each window is searched once or twice, and the king is never left in check by passing."""
    file = tmp_path / "mine.py"
    file.write_text(HEAD + text)
    options = SearchOptions(with_=str(file))
    dice = random.Random(5)
    for workers in (1, 3):
        with contextlib.closing(Arena(workers, 1, kernels=options.kernels)) as arena:
            for fen in (DRAUGHTY, KIWIPETE):
                write_search(arena, chess.Board(fen), Limits(depth=6, nodes=10_000), options)
                assert most_root_searches(arena, dice) <= MOST_SEARCHES
                assert abs(int(arena.header[0]["score"])) < MATE
