"""Playing below full strength: fewer nodes, and now and then not the best move.

The Elo numbers are those of games against Stockfish at its limited strengths (docs/guides/uci.md); measured again and
fitted by bench/match/fit_strength.py. Nothing here depends on the clock, so neither does the strength.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from psearch.results import Info


class Level(NamedTuple):
    """What a strength is made of."""

    elo: int
    nodes: int
    """nodes that a move may cost"""
    noise_cp: int
    """A move that is worse by this many centipawns is chosen about a third as often as the best; 0: always the best."""


LEVELS = (
    Level(1100, 80, 200),
    Level(1300, 325, 88),
    Level(1400, 430, 80),
    Level(1600, 850, 65),
    Level(1850, 2250, 35),
    Level(2100, 11_000, 0),
)
"""Measured; 1850 and 2100 stand on a line through several that were, and 2100 came out at 2149 (docs/guides/uci.md).
Between two of them the noise is interpolated, and the logarithm of the nodes."""
MIN_ELO, MAX_ELO = LEVELS[0].elo, LEVELS[-1].elo
MOST_LINES = 4
_MATE_CP = 10_000


def _between(elo: int, values: Sequence[float]) -> float:
    """Interpolate between values that belong to the levels."""
    for (low, high), (at_low, at_high) in zip(itertools.pairwise(LEVELS), itertools.pairwise(values), strict=True):
        if elo <= high.elo:
            share = (elo - low.elo) / (high.elo - low.elo)
            return (1 - share) * at_low + share * at_high
    raise ValueError(f"no level of Elo {elo}")


def node_limit(elo: int) -> int:
    """Return nodes that a move may cost at this level, MIN_ELO to MAX_ELO."""
    return round(math.exp(_between(elo, [math.log(level.nodes) for level in LEVELS])))


def noise_cp(elo: int) -> float:
    """Return how far, in centipawns, a move may be worse and still be chosen about a third as often as the best."""
    return _between(elo, [level.noise_cp for level in LEVELS])


def choose_line(lines: Sequence[Info], elo: int, dice: random.Random) -> Info:
    """Return one of the best lines by chance, the better the likelier; the first when it mates or the level is the
    highest."""
    noise = noise_cp(elo)
    mate = lines[0].score.relative.mate()
    if noise == 0 or len(lines) < 2 or (mate is not None and mate > 0):
        return lines[0]
    scores = [line.score.relative.score(mate_score=_MATE_CP) or 0 for line in lines]
    weights = [math.exp((score - scores[0]) / noise) for score in scores]
    return dice.choices(list(lines), weights)[0]
