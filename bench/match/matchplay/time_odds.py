"""What more workers are worth in time: the odds at which one side scores half, from games at several odds.

Odds of k: the second side has k times the time of the first. The first side's score is fitted by
s = 1 / (1 + exp(-(a + b ln k))), the logistic curve of Elo with a constant gain for each doubling of the time, by
maximum likelihood (a draw is half a win and half a loss); the odds asked for are exp(-a / b). The sample is the pair
of games from one opening, colours changed: the interval is from pairs drawn again, for each k for itself (percentile
bootstrap, 95%).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

try:
    from scipy.optimize import minimize
except ImportError:
    raise SystemExit("the intervals need scipy: pip install 'psearch[study]'") from None

from .elo import PAIR_SCORES, strength
from .tally import elo_text

_ROUNDS = 1000
_SEED = 0
_STEEPEST = 30.0
"""Of `a` and `b`: where one side wins everything there is no maximum."""
_ELO_OF_A_DOUBLING = 400 / math.log(10) * math.log(2)

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Worth:
    """What the first side is worth in time of the second."""

    odds: float
    """nan where the games show no gain from more time"""
    low: float
    high: float
    """the 95% interval; 0 and infinity where some of the samples drawn have no such odds"""
    doubling_elo: float
    """what twice the time is worth to the second side, by the same fit"""


def _fit(log_odds: Array, counts: Array) -> tuple[float, float]:
    """(a, b). log_odds: [k]; counts: [k, kind of pair]."""
    games = 2.0 * counts.sum(axis=1)
    points = 2.0 * counts @ np.array(PAIR_SCORES)
    middle = log_odds.mean()

    def loss(curve: Array) -> tuple[float, Array]:
        linear = curve[0] + curve[1] * (log_odds - middle)
        score = 1 / (1 + np.exp(-linear))
        missed = games * score - points
        likelihood = points @ np.logaddexp(0, -linear) + (games - points) @ np.logaddexp(0, linear)
        return float(likelihood), np.array([missed.sum(), missed @ (log_odds - middle)])

    found = minimize(loss, np.zeros(2), jac=True, method="L-BFGS-B", bounds=[(-_STEEPEST, _STEEPEST)] * 2)
    height, slope = (float(value) for value in found.x)
    return height - slope * middle, slope


def _even(log_odds: Array, counts: Array) -> float:
    """ln of the odds of an even score; infinite where more time gains nothing."""
    constant, slope = _fit(log_odds, counts)
    if slope >= 0:
        return math.inf if constant + slope * log_odds.mean() > 0 else -math.inf
    return -constant / slope


def worth(pairs: Mapping[float, Sequence[int]]) -> Worth | None:
    """From the numbers of pairs of each kind (see `elo.py`) at each of the odds; None without pairs at two of them."""
    played = sorted(odds for odds, counts in pairs.items() if sum(counts))
    if len(played) < 2:
        return None
    log_odds = np.log(played)
    counts = np.array([pairs[odds] for odds in played])
    _, slope = _fit(log_odds, counts)
    dice = np.random.default_rng(_SEED)
    drawn = [
        _even(log_odds, np.array([dice.multinomial(row.sum(), row / row.sum()) for row in counts]))
        for _ in range(_ROUNDS)
    ]
    low, high = np.exp(np.percentile(drawn, (2.5, 97.5), method="nearest"))
    odds = math.exp(_even(log_odds, counts)) if slope < 0 else math.nan
    return Worth(odds, float(low), float(high), -slope * _ELO_OF_A_DOUBLING)


def report(first: str, second: str, pairs: Mapping[float, Sequence[int]]) -> str:
    """A table in Markdown with a row for each of the odds, and what follows from it. first, second: their names."""
    lines = ["| time of the other | games | pairs of 0, 1/2, 1, 3/2, 2 points | Elo (95%) |", "|---|---|---|---|"]
    for odds, counts in sorted(pairs.items()):
        found = strength(counts)
        if found is not None:
            lines.append(f"| x{odds:g} | {2 * found.pairs} | {list(counts)} | {elo_text(found)} |")
    found_worth = worth(pairs)
    if found_worth is None:
        return "\n".join(lines)
    return "\n".join([*lines, "", _sentence(first, second, found_worth, sorted(pairs))])


def _sentence(first: str, second: str, found: Worth, played: Sequence[float]) -> str:
    if math.isnan(found.odds):
        return f"{first} against {second}: the games show no gain from more time"
    text = f"{first} are worth x{found.odds:.2g} the time of {second} ({found.low:.2g} to {found.high:.2g});"
    text += f" twice the time is worth {found.doubling_elo:.0f} Elo"
    return text if played[0] <= found.odds <= played[-1] else text + "; outside the odds played"
