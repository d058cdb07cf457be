"""The windows of a root, whatever its searches answer: each iteration ends after a few of them."""

from __future__ import annotations

import contextlib
import itertools
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import chess
import pytest
from inspect_node import Answers, RootProbe
from positions import KIWIPETE
from round_robin_entries import ROUND_ROBIN

from psearch.arena import setup
from psearch.arena.arena import Arena
from psearch.arena.setup import write_search
from psearch.arena.validate import describe, leftovers
from psearch.options import SearchOptions
from psearch.results import Limits
from psearch.scheduler.scheduler_entries import is_done
from psearch_core.constants import INFINITE, MATE, MATE_IN_MAX_PLY, STATE_ENTER, STATE_ROOT
from psearch_core.records.pruning_record import MODES
from psearch_core.toolchain.jit import CHECK

MOST_SEARCHES = 48
"""Root searches of an iteration: steps that double until they have crossed all scores, as many halvings, and one with
an open window."""
EDGES = (2 - MATE, -MATE_IN_MAX_PLY, 1 - MATE_IN_MAX_PLY, -1, 0, 1, MATE_IN_MAX_PLY - 1, MATE_IN_MAX_PLY, MATE - 1)
DRAUGHTY = "8/2k5/3p4/2p1p3/2P1P3/3P4/2K5/8 w - - 0 1"
"""Few captures, and enough moves for a value to swing."""


def searched(alpha: int, beta: int, value: int) -> int:
    """What a search makes of a root's value. A question beyond all scores is cut off by mate distance pruning at the
    first reply, and nothing is proved."""
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
