"""Correction history: what it learns, and what it makes of an evaluation."""

from __future__ import annotations

import random

import chess
import numpy as np
import pytest
from inspect_pruning import PruningProbe
from pruning_probes import IN_CHECK, PAWNS, QUIET, code, probe_of

from psearch.arena.arena import Arena
from psearch.arena.setup import write_search
from psearch.options import SearchOptions
from psearch.results import Limits
from psearch.scheduler.scheduler_entries import load_kernels, work
from psearch_core.constants import BOUND_EXACT, BOUND_LOWER, BOUND_UPPER, MATE, NO_MOVE
from psearch_core.records.pruning_record import AEL, MODERN, PLAIN, SOUND, Pruning

TABLES = ("pawn_correction", "piece_correction", "move_correction")
LIMIT = 1024


def entered(tables: np.ndarray, fen: str = QUIET, **values: int) -> PruningProbe:
    """A node of depth 6 that is not in check, worth 40 by its evaluation, with nothing learnt."""
    probe = probe_of(tables, fen, correction=1, **values)
    probe.enter(6, 0, eval=40, cont_1=77, cont_2=300)
    return probe


def learnt(probe: PruningProbe) -> list[int]:
    """All entries that are not zero: one of pawns, two of pieces, one of moves."""
    return [int(value) for name in TABLES for value in probe.learning[0][name].ravel() if value]


def test_the_entries_follow_the_formula(tables: np.ndarray) -> None:
    """Each goes towards +-1024 by a share of the difference, and never beyond."""
    probe = entered(tables, correction_slowness=3)
    dice = random.Random(71)
    expected = 0
    for number in range(400):
        depth = dice.randrange(1, 12)
        best = dice.randrange(-600, 700) if number < 200 else 900
        probe.node["depth"] = depth
        probe.learn_correction(best, BOUND_EXACT)
        change = min(max((best - 40) * depth // 3, -256), 256)
        expected += change - expected * abs(change) // LIMIT
        assert learnt(probe) == [expected] * 4 if expected else not learnt(probe)
        assert abs(expected) <= LIMIT
    assert expected > 0.99 * LIMIT


def test_the_correction_is_the_weighted_sum(tables: np.ndarray) -> None:
    probe = entered(tables, correction_pawns=50, correction_pieces=30, correction_moves=7)
    for _ in range(100):
        probe.learn_correction(-300, BOUND_EXACT)
    entry = learnt(probe)[0]
    assert probe.corrected(25) == 25 + ((50 + 30 + 30 + 7) * entry + LIMIT // 2) // LIMIT
    assert -120 < probe.corrected(25) - 25 < -100
    # another position, with the same pawns only, has that part of it
    board = chess.Board(QUIET)
    for square in (chess.A1, chess.A8):
        board.remove_piece_at(square)
    probe.set(board)
    probe.node["cont_1"] = 78
    assert probe.corrected(25) == 25 + (50 * entry + LIMIT // 2) // LIMIT
    # nor has the other side to move
    probe.set(chess.Board(QUIET.replace(" w ", " b ")))
    assert probe.corrected(25) == 25


@pytest.mark.parametrize(
    ("best", "bound", "move", "learns"),
    [
        (90, BOUND_EXACT, "a2a3", True),
        (90, BOUND_LOWER, "a2a3", True),
        (90, BOUND_UPPER, "", False),  # no more than 90 says nothing against 40
        (10, BOUND_UPPER, "", True),
        (10, BOUND_LOWER, "a2a3", False),
        (40, BOUND_EXACT, "a2a3", False),
        (90, BOUND_EXACT, "c4f7", False),  # a capture: the evaluation is not to blame
        (MATE - 9, BOUND_LOWER, "a2a3", False),
    ],
)
def test_when_it_learns(tables: np.ndarray, best: int, bound: int, move: str, learns: bool) -> None:
    probe = entered(tables)
    probe.node["best_move"] = code(QUIET, move) if move else NO_MOVE
    probe.learn_correction(best, bound)
    assert len(learnt(probe)) == (4 if learns else 0)


def test_nothing_is_learnt_in_check_or_without_the_technique(tables: np.ndarray) -> None:
    probe = probe_of(tables, IN_CHECK, correction=1)
    probe.enter(6, 0)
    probe.learn_correction(300, BOUND_EXACT)
    assert not learnt(probe)
    probe = probe_of(tables, PAWNS)
    probe.enter(6, 0)
    probe.learn_correction(300, BOUND_EXACT)
    assert not learnt(probe)
    assert probe.corrected(25) == 25


def searched(pruning: Pruning) -> Arena:
    """After a search of 20,000 nodes by one worker."""
    load_kernels()
    arena = Arena(workers=1, hash_mb=1)
    write_search(arena, chess.Board(QUIET), Limits(nodes=20_000), SearchOptions(policy="serial", pruning=pruning))
    while not work(arena.context, 0, 1 << 20):
        pass
    return arena


@pytest.mark.parametrize("pruning", [PLAIN, SOUND, AEL], ids=["plain", "sound", "ael"])
def test_modes_without_it_learn_none(pruning: Pruning) -> None:
    learning = searched(pruning).header[0]["learning"]
    assert learning["quiet"].any()
    assert not any(learning[name].any() for name in TABLES)


def test_a_search_learns_and_forgets(tables: np.ndarray) -> None:
    """What is learnt stays within its limits, the table keeps the evaluation as evaluated, a new game clears it."""
    arena = searched(MODERN)
    learning = arena.header[0]["learning"]
    for name in TABLES:
        assert np.count_nonzero(learning[name]) > 100
        assert np.abs(learning[name]).max() <= LIMIT
    board = chess.Board(QUIET)
    probe = probe_of(tables, QUIET)
    key = int(probe.record["key"]) & (1 << 64) - 1
    words = arena.tt[(key * (len(arena.tt) // 8) >> 64) * 8 :][:8].tolist()
    stored = [data for check, data in zip(words[::2], words[1::2], strict=True) if check ^ data == key]
    assert [((data >> 32 & 0xFFFF) ^ 0x8000) - 0x8000 for data in stored] == [probe.evaluate_by_network()], board.fen()
    arena.clear_learning()
    assert not any(learning[name].any() for name in TABLES)
