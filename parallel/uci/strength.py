"""Playing below full strength: fewer nodes, and now and then not the best move.

The Elo number orders the levels; it has not been measured against rated players.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import chess

from psearch.results import Info

_LEAST_ELO = 1000
_LEAST_NODES = 150
_ELO_PER_DOUBLING = 80
"""What twice the nodes are worth, roughly, at the depths in question."""
_FULL_ELO = 2200
_MOST_NOISE_CP = 70
MOST_LINES = 4
_MATE_CP = 10_000


def node_limit(elo: int) -> int:
    """Nodes that a move may cost at this level.

    >>> node_limit(1000), node_limit(1080), node_limit(2200)
    (150, 300, 4915200)
    """
    return round(_LEAST_NODES * 2 ** ((elo - _LEAST_ELO) / _ELO_PER_DOUBLING))


def noise_cp(elo: int) -> float:
    """How far, in centipawns, a move may be worse and still be chosen about a third as often as the best.

    >>> noise_cp(1000), noise_cp(2200)
    (70.0, 0.0)
    """
    return _MOST_NOISE_CP * max(0, _FULL_ELO - elo) / (_FULL_ELO - _LEAST_ELO)


def choose_line(lines: Sequence[Info], elo: int, dice: random.Random) -> Info:
    """One of the best lines by chance, the better the likelier; the first when it mates or the level is the highest."""
    noise = noise_cp(elo)
    mate = lines[0].score.relative.mate()
    if noise == 0 or len(lines) < 2 or (mate is not None and mate > 0):
        return lines[0]
    scores = [line.score.relative.score(mate_score=_MATE_CP) or 0 for line in lines]
    weights = [math.exp((score - scores[0]) / noise) for score in scores]
    return dice.choices(list(lines), weights)[0]


def bestmove_of(line: Info) -> tuple[chess.Move, chess.Move | None]:
    """The move of a line and the expected reply."""
    return line.pv[0], line.pv[1] if len(line.pv) > 1 else None
