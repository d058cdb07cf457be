"""A limited strength."""

from __future__ import annotations

import random
from dataclasses import replace

import chess
import chess.engine

from psearch.faces.uci.strength import LEVELS, MAX_ELO, MIN_ELO, choose_line, node_limit, noise_cp
from psearch.results import Info

MATE_IN_ONE, MATE_IN_TWO = (chess.engine.PovScore(chess.engine.Mate(moves), chess.WHITE) for moves in (1, 2))


def line(number: int, score_cp: int) -> Info:
    return Info(
        7, 11, chess.engine.PovScore(chess.engine.Cp(score_cp), chess.WHITE), "exact", 1000, 0.25, multipv=number
    )


def test_levels_are_ordered() -> None:
    steps = range(MIN_ELO, MAX_ELO + 1, 50)
    limits = [node_limit(elo) for elo in steps]
    assert limits == sorted(set(limits))
    noises = [noise_cp(elo) for elo in steps]
    assert noises == sorted(set(noises), reverse=True)
    for level in LEVELS:
        assert (node_limit(level.elo), noise_cp(level.elo)) == (level.nodes, level.noise_cp)


def test_weak_levels_choose_worse_moves_now_and_then() -> None:
    lines = [line(number, score) for number, score in enumerate((40, 20, -30, -2000), start=1)]
    counts = {}
    for elo in (MIN_ELO, (MIN_ELO + MAX_ELO) // 2, MAX_ELO):
        dice = random.Random(elo)
        chosen = [choose_line(lines, elo, dice).multipv for _ in range(2000)]
        counts[elo] = [chosen.count(number) for number in (1, 2, 3, 4)]
        assert counts[elo] == sorted(counts[elo], reverse=True)
        assert counts[elo][3] <= 2  # nobody throws two queens away for fun
    assert counts[MAX_ELO] == [2000, 0, 0, 0]
    assert counts[MIN_ELO][0] < counts[(MIN_ELO + MAX_ELO) // 2][0] < 2000


def test_a_mate_that_is_seen_is_played() -> None:
    lines = [replace(line(1, 0), score=MATE_IN_ONE), replace(line(2, 0), score=MATE_IN_TWO)]
    dice = random.Random(1)
    assert {choose_line(lines, MIN_ELO, dice).multipv for _ in range(50)} == {1}
