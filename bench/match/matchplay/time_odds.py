"""Time odds that more workers are worth: the odds at which one side scores half, from games at several odds.

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
    from scipy.special import expit
except ImportError:
    raise SystemExit("this needs scipy: pip install '.[study]'") from None

from .elo import PAIR_SCORES, strength
from .tally import elo_text

_DRAWN = 4000
_SEED = 0
_PRIOR_GAMES = 0.5
"""drawn, at each of the odds: where one side won everything there would be no maximum"""
_STEPS = 40
_LONGEST_STEP = 2.0
_ELO_OF_A_DOUBLING = 400 / math.log(10) * math.log(2)

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Worth:
    """Factor of the second side's time that the first side's advantage is worth."""

    odds: float
    """Odds of time; nan where the games show no gain from more time."""
    low: float
    high: float
    """Upper end of the 95% interval; 0 to infinity where some of the samples drawn have no such odds."""
    doubling_elo: float
    """Elo that twice the time gives the second side, by the same fit."""


def fit(log_odds: Array, counts: Array) -> tuple[Array, Array]:
    """`a` and `b` of the curve, [sample] each. log_odds: [k]; counts: [sample, k, kind of pair].

    By Newton's method, all samples at once: the likelihood is concave, and has its only maximum at a finite place.
    """
    games = 2.0 * counts.sum(axis=2) + _PRIOR_GAMES
    points = 2.0 * counts @ np.array(PAIR_SCORES) + _PRIOR_GAMES / 2
    middle = log_odds.mean()
    terms = np.stack([np.ones_like(log_odds), log_odds - middle])  # [parameter, k]
    curve = np.zeros((len(counts), 2))
    for _ in range(_STEPS):
        score = expit(curve @ terms)
        slope = (points - games * score) @ terms.T
        bend = np.einsum("sk,pk,qk->spq", games * score * (1 - score), terms, terms)
        curve += np.linalg.solve(bend, slope[..., None])[..., 0].clip(-_LONGEST_STEP, _LONGEST_STEP)
    return curve[:, 0] - curve[:, 1] * middle, curve[:, 1]


def _even(log_odds: Array, counts: Array) -> Array:
    """Return ln of the odds of an even score, [sample]; infinite where more time gains nothing."""
    a, b = fit(log_odds, counts)
    hopeless = np.where(a + b * log_odds.mean() > 0, math.inf, -math.inf)
    gains = b < 0
    return np.where(gains, -a / np.where(gains, b, -1.0), hopeless)


def worth(pairs: Mapping[float, Sequence[int]]) -> Worth | None:
    """Return the worth, from the numbers of pairs of each kind (see `elo.py`) at each of the odds; None without pairs
    at two of them."""
    played = sorted(odds for odds, counts in pairs.items() if sum(counts))
    if len(played) < 2:
        return None
    log_odds = np.log(played)
    counts = np.array([pairs[odds] for odds in played])
    dice = np.random.default_rng(_SEED)
    drawn = np.stack([dice.multinomial(row.sum(), row / row.sum(), size=_DRAWN) for row in counts], axis=1)
    low = high = math.nan  # where all pairs are alike, and drawn again would be the same
    if (counts.sum(axis=1) > 1).all() and (np.count_nonzero(counts, axis=1) > 1).any():
        low, high = np.exp(np.percentile(_even(log_odds, drawn), (2.5, 97.5), method="nearest"))
    slope = float(fit(log_odds, counts[None])[1][0])
    odds = math.exp(_even(log_odds, counts[None])[0]) if slope < 0 else math.nan
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
    between = "no interval" if math.isnan(found.low) else f"{found.low:.2g} to {found.high:.2g}"
    text = f"{first} are worth x{found.odds:.2g} the time of {second} ({between});"
    text += f" twice the time is worth {found.doubling_elo:.0f} Elo"
    return text if played[0] <= found.odds <= played[-1] else text + "; outside the odds played"
