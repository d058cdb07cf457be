"""Arithmetic of a match: score, Elo with error bars, likelihood of superiority, and Wald's sequential test (SPRT).

Games come in pairs, one opening with each colour, and the two results of a pair are not independent: so the sample is
the pair, of which there are five kinds (0, 1/2, 1, 3/2, 2 points: pentanomial). Half a pair counts for nothing here.

Elo is logistic: an expected score s is 400 log10(s / (1 - s)). Normalised Elo is (s - 1/2) / sigma times 800 / ln 10,
sigma the standard deviation of one game (M. Van den Bergh, "Normalized Elo", 2020): it does not change with the share
of draws, so that a test takes the same number of games in every book.

The test compares H1 (`elo1`) with H0 (`elo0`) by the generalised likelihood ratio: the distribution over the five
kinds that fits best under H1 against the one that fits best under H0 (Van den Bergh, "A practical introduction to the
GSPRT").
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

PAIR_SCORES = (0.0, 0.25, 0.5, 0.75, 1.0)
"""points per game of each kind of pair"""
CONFIDENCE = 0.95
MODELS = ("logistic", "normalised")

_Z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
_PER_ELO = 800 / math.log(10)
_FEW = 1e-3
"""stands for a kind of pair not yet seen: a likelihood needs every kind to be possible"""
_HALVINGS = 100
_MOST_ROUNDS = 100


def score_of_elo(elo: float) -> float:
    """The expected score per game, 0 to 1."""
    return 1 / (1 + 10 ** (-elo / 400))


def elo_of_score(score: float) -> float:
    """Logistic Elo; infinite when every game was won or lost."""
    if score <= 0:
        return -math.inf
    if score >= 1:
        return math.inf
    return 400 * math.log10(score / (1 - score))


@dataclass(frozen=True)
class Strength:
    """Strength of the first engine against the second, from complete pairs."""

    pairs: int
    score: float
    """Score per game, 0 to 1."""
    elo: float
    low: float
    """Lower end of the 95% interval of `elo`; infinite, as `high`, if all pairs are alike."""
    high: float
    normalised_elo: float
    los: float | None
    """Likelihood of superiority: the probability, by the normal distribution, that the score is above one half; None if
    all pairs are alike."""


def moments(counts: Sequence[float]) -> tuple[float, float]:
    """Mean and variance of a pair's points per game."""
    total = sum(counts)
    mean = sum(count * score for count, score in zip(counts, PAIR_SCORES, strict=True)) / total
    return mean, sum(count * (score - mean) ** 2 for count, score in zip(counts, PAIR_SCORES, strict=True)) / total


def strength(counts: Sequence[int]) -> Strength | None:
    """Return the strength from the numbers of pairs with 0, 1/2, 1, 3/2 and 2 points; None without any pair.

    The interval is the score's, mean +- 1.96 standard errors, and its ends turned into Elo.
    """
    pairs = sum(counts)
    if not pairs:
        return None
    mean, variance = moments(counts)
    error = math.sqrt(variance / pairs)
    elo = elo_of_score(mean)
    if not error:
        normalised = 0.0 if mean == 0.5 else math.copysign(math.inf, mean - 0.5)
        return Strength(pairs, mean, elo, low=-math.inf, high=math.inf, normalised_elo=normalised, los=None)
    return Strength(
        pairs=pairs,
        score=mean,
        elo=elo,
        low=elo_of_score(mean - _Z * error),
        high=elo_of_score(mean + _Z * error),
        normalised_elo=(mean - 0.5) / math.sqrt(2 * variance) * _PER_ELO,
        los=NormalDist().cdf((mean - 0.5) / error),
    )


@dataclass(frozen=True)
class Sprt:
    """A sequential test of elo >= elo1 (accepted: H1) against elo <= elo0 (accepted: H0)."""

    elo0: float
    elo1: float
    alpha: float = 0.05
    """Probability of accepting H1 where H0 holds."""
    beta: float = 0.05
    """Probability of accepting H0 where H1 holds."""
    model: str = "normalised"

    @property
    def bounds(self) -> tuple[float, float]:
        """Log-likelihood ratios at which H0 and H1 are accepted (A. Wald, 1945)."""
        return math.log(self.beta / (1 - self.alpha)), math.log((1 - self.beta) / self.alpha)

    def llr(self, counts: Sequence[int]) -> float:
        """The log-likelihood ratio of the pairs seen; 0.0 before there is one."""
        pairs = sum(counts)
        if not pairs:
            return 0.0
        filled = [max(count, _FEW) for count in counts]
        total = sum(filled)
        seen = [count / total for count in filled]
        fit = _fit_score if self.model == "logistic" else _fit_normalised
        under0, under1 = fit(seen, self.elo0), fit(seen, self.elo1)
        return pairs * sum(share * math.log(one / zero) for share, one, zero in zip(seen, under1, under0, strict=True))

    def decision(self, llr: float) -> str | None:
        """`H0`, `H1`, or None while nothing is decided."""
        low, high = self.bounds
        return "H1" if llr >= high else "H0" if llr <= low else None


def _fit(seen: Sequence[float], values: Sequence[float]) -> list[float]:
    """The likeliest distribution for shares `seen` under which `values` have the mean 0.

    With a Lagrange multiplier x it is share / (1 + x value); the mean falls in x between the poles, where all
    shares stay positive.
    """
    low, high = -1 / max(values), -1 / min(values)
    for _ in range(_HALVINGS):
        x = (low + high) / 2
        mean = sum(share * value / (1 + x * value) for share, value in zip(seen, values, strict=True))
        low, high = (x, high) if mean > 0 else (low, x)
    x = (low + high) / 2
    return [share / (1 + x * value) for share, value in zip(seen, values, strict=True)]


def _fit_score(seen: Sequence[float], elo: float) -> list[float]:
    """The likeliest distribution with the expected score of `elo`."""
    expected = score_of_elo(elo)
    return _fit(seen, [score - expected for score in PAIR_SCORES])


def _fit_normalised(seen: Sequence[float], elo: float) -> list[float]:
    """The likeliest distribution whose normalised Elo is `elo`: mean - 1/2 = t sigma.

    That is not linear in the distribution. Around the present one, with mean m and deviation d, t sigma is the mean of
    t d / 2 (1 + ((score - m) / d)^2), exactly so at that distribution: solved for that, and again.
    """
    t = elo / _PER_ELO * math.sqrt(2)  # of a pair's mean, whose deviation is the game's divided by sqrt(2)
    fitted = [1 / len(PAIR_SCORES)] * len(PAIR_SCORES)
    for _ in range(_MOST_ROUNDS):
        mean, variance = moments(fitted)
        deviation = math.sqrt(variance)
        values = [score - 0.5 - t * deviation / 2 * (1 + ((score - mean) / deviation) ** 2) for score in PAIR_SCORES]
        before, fitted = fitted, _fit(seen, values)
        if all(math.isclose(one, other, rel_tol=1e-12) for one, other in zip(before, fitted, strict=True)):
            break
    return fitted
