"""Limits the playing strength: fewer nodes, and sometimes not the best move.

The Elo numbers come from games against Stockfish at its limited strengths (docs/guides/uci.md), fitted by
bench/match/fit_strength.py. Strength does not depend on the clock. All interfaces search by
`psearch.searcher.root.prepared`.
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
    """Parameters of one strength."""

    elo: int
    nodes: int
    """Nodes per move."""
    noise_cp: int
    """A move worse by this many centipawns is chosen about a third as often as the best one; 0: always the best."""


LEVELS = (
    Level(800, 40, 600),
    Level(1100, 80, 200),
    Level(1300, 325, 88),
    Level(1400, 430, 80),
    Level(1600, 850, 65),
    Level(1850, 2250, 35),
    Level(2100, 11_000, 0),
    Level(2350, 40_000, 0),
    Level(2600, 220_000, 0),
)
"""Levels from games. 800 lies between two measured settings, 1850 on a line through several; 2600 is extrapolated
by 100 Elo for a doubling of the nodes (docs/guides/uci.md).
Between two levels, noise and the logarithm of the nodes are interpolated."""
MIN_ELO, MAX_ELO = LEVELS[0].elo, LEVELS[-1].elo
MOST_LINES = 4
_MATE_CP = 10_000

_LONGEST_SHARE, _LONGEST_S = 0.05, 15.0
"""Longest delay: share of the clock, and seconds."""


def _between(elo: int, values: Sequence[float]) -> float:
    """Interpolate `values`, one per level, at an Elo number."""
    for (low, high), (at_low, at_high) in zip(itertools.pairwise(LEVELS), itertools.pairwise(values), strict=True):
        if elo <= high.elo:
            share = (elo - low.elo) / (high.elo - low.elo)
            return (1 - share) * at_low + share * at_high
    raise ValueError(f"no level of Elo {elo}")


def node_limit(elo: int) -> int:
    """Return the nodes per move at a strength from MIN_ELO to MAX_ELO."""
    return round(math.exp(_between(elo, [math.log(level.nodes) for level in LEVELS])))


def noise_cp(elo: int) -> float:
    """Return how many centipawns worse a move is that is chosen about a third as often as the best one."""
    return _between(elo, [level.noise_cp for level in LEVELS])


def choose_line(lines: Sequence[Info], elo: int, dice: random.Random) -> Info:
    """Draw a line, the better the likelier; return the first one if it mates or the level is the highest."""
    noise = noise_cp(elo)
    mate = lines[0].score.relative.mate()
    if noise == 0 or len(lines) < 2 or (mate is not None and mate > 0):
        return lines[0]
    scores = [line.score.relative.score(mate_score=_MATE_CP) or 0 for line in lines]
    weights = [math.exp(min(0, score - scores[0]) / noise) for score in scores]
    return dice.choices(list(lines), weights)[0]


def human_delay_s(
    board: chess.Board, move: chess.Move, dice: random.Random, usual_s: float, increment_s: float | None = None
) -> float:
    """Return the seconds after which a person may answer with `move`, counted from the opponent's move.

    It is longer with many moves and captures to choose from, and short for a recapture or an only move. usual_s: the
    time for each move or, with an `increment_s`, the time left on the clock.
    """
    most_s = usual_s
    if increment_s is not None:
        most_s = min(_LONGEST_S, _LONGEST_SHARE * usual_s)
        usual_s = usual_s / 40 + increment_s / 2
    before = board.copy(stack=1)
    last = before.pop() if before.move_stack else None
    is_recapture = last is not None and last.to_square == move.to_square and before.is_capture(last)
    moves = list(board.legal_moves)
    is_easy = is_recapture or len(moves) == 1
    share = 0.25 if is_easy else 0.5 + (len(moves) + 3 * sum(map(board.is_capture, moves))) / 50
    return min(most_s, usual_s * share * dice.uniform(0.6, 1.4))
