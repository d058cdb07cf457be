"""A limited strength."""

from __future__ import annotations

import random

import chess
import chess.engine

from psearch.results import Info
from psearch.uci.strength import choose_line, node_limit, noise_cp


def line(number: int, score_cp: int) -> Info:
    return Info(
        7, 11, chess.engine.PovScore(chess.engine.Cp(score_cp), chess.WHITE), "exact", 1000, 0.25, multipv=number
    )


def test_levels_are_ordered() -> None:
    limits = [node_limit(elo) for elo in range(1000, 2201, 100)]
    assert limits == sorted(set(limits))
    noises = [noise_cp(elo) for elo in range(1000, 2201, 100)]
    assert noises == sorted(set(noises), reverse=True)


def test_weak_levels_choose_worse_moves_now_and_then() -> None:
    lines = [line(number, score) for number, score in enumerate((40, 20, -30, -900), start=1)]
    counts = {}
    for elo in (1000, 1600, 2200):
        dice = random.Random(elo)
        chosen = [choose_line(lines, elo, dice).multipv for _ in range(2000)]
        counts[elo] = [chosen.count(number) for number in (1, 2, 3, 4)]
        assert counts[elo] == sorted(counts[elo], reverse=True)
        assert counts[elo][3] == 0  # nobody throws a queen away for fun
    assert counts[2200] == [2000, 0, 0, 0]
    assert counts[1000][0] < counts[1600][0] < 2000
