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
    import chess

    from psearch.results import Info


class Level(NamedTuple):
    """What a strength is made of."""

    elo: int
    nodes: int
    """that a move may cost"""
    noise_cp: int
    """A move worse by so many centipawns is chosen about a third as often as the best; 0: always the best."""


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


def _between(elo: int) -> tuple[Level, Level, float]:
    """The measured levels below and above, and how far it is from the one to the other, 0 to 1."""
    for low, high in itertools.pairwise(LEVELS):
        if elo <= high.elo:
            return low, high, (elo - low.elo) / (high.elo - low.elo)
    raise ValueError(f"no level of Elo {elo}")


def node_limit(elo: int) -> int:
    """Return nodes that a move may cost at this level, MIN_ELO to MAX_ELO."""
    low, high, share = _between(elo)
    return round(math.exp((1 - share) * math.log(low.nodes) + share * math.log(high.nodes)))


def noise_cp(elo: int) -> float:
    """Return how far, in centipawns, a move may be worse and still be chosen about a third as often as the best."""
    low, high, share = _between(elo)
    return low.noise_cp + (high.noise_cp - low.noise_cp) * share


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


def bestmove_of(line: Info) -> tuple[chess.Move, chess.Move | None]:
    """Return the move of a line and the expected reply."""
    return line.pv[0], line.pv[1] if len(line.pv) > 1 else None
