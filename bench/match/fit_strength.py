"""What psearch's `UCI_Elo` is worth, fitted to matches against Stockfish at its limited strengths.

    python bench/match/fit_strength.py docs/measurements/strength/*-first.json [--plot FILE.png]

Each file is the summary of a match (PREFIX.json of match.py) in which both engines have `UCI_LimitStrength` and
`UCI_Elo`. A level's rating is on the scale of Stockfish's `UCI_Elo` (60 s + 0.6 s, anchored to CCRL 40/4).

**Model.** The expected score of a level with rating r against an opponent with nominal rating e is
1 / (1 + 10^((e - r) / 400)). Each r is fitted by maximum likelihood to all matches of its level, a draw counting as
half a win and half a loss. Each match gets one drawn game more, so that r is finite whatever the result.

**Intervals** (95%) are those of a bootstrap: pairs of games (one opening, both colours) are drawn again from each
match, and r is fitted again. They say nothing of what Stockfish's own scale may be off: play each level against
opponents as far above it as below.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matchplay.elo import PAIR_SCORES
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import bootstrap

from psearch.files.safe_files import json_value
from psearch.lab.studies.plots import check_plot
from psearch.results import PsearchError

Array = np.ndarray[Any, Any]

ROUNDS = 400
SEED = 1
_PER_ELO = np.log(10) / 400
_PRIOR_GAMES = 1.0
_FARTHEST = 2000.0
"""from any opponent that a rating is looked for"""


@dataclass(frozen=True)
class Played:
    """One match, as its summary has it."""

    level: int
    """`UCI_Elo` of psearch"""
    opponent: int
    """`UCI_Elo` of Stockfish"""
    pairs: tuple[int, ...]
    """numbers of pairs with 0, 1/2, 1, 3/2 and 2 points"""
    wins: int
    draws: int
    losses: int


def read_match(path: Path) -> Played:
    """Raises ValueError, with the name of the file, for what is not such a summary."""
    try:
        summary = json_value(path.read_text("utf-8"))
        sides = [summary["settings"][side]["options"] for side in ("first", "second")]
        if any(side["UCI_LimitStrength"] != "true" for side in sides):
            raise ValueError("UCI_LimitStrength is not true for both")
        pairs = tuple(map(int, summary["pairs"]))
        if len(pairs) != len(PAIR_SCORES) or not sum(pairs):
            raise ValueError("no complete pair of games")
        level, opponent = (int(side["UCI_Elo"]) for side in sides)
        return Played(level, opponent, pairs, *(int(summary[name]) for name in ("wins", "draws", "losses")))
    except (KeyError, TypeError, AttributeError, OverflowError):
        raise ValueError(f"{path}: not a summary of match.py with UCI_LimitStrength and UCI_Elo of both") from None
    except ValueError as error:  # what is no JSON, too
        raise ValueError(f"{path}: {error}") from None
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from None


def expected_score(rating: float, opponent: Array | float) -> Any:
    """Of a level against an opponent, 0 to 1."""
    return expit(_PER_ELO * (rating - opponent))


def fit(opponents: Array, pairs: Array) -> float:
    """The rating of a level. opponents: their ratings; pairs: [match, kind], numbers of pairs.

    It is the one with which the points expected are those scored: there the likelihood has its only maximum.
    """
    games = 2 * pairs.sum(axis=1) + _PRIOR_GAMES
    points = float((2 * pairs @ np.array(PAIR_SCORES) + _PRIOR_GAMES / 2).sum())
    low, high = opponents.min() - _FARTHEST, opponents.max() + _FARTHEST
    return float(brentq(lambda rating: games @ expected_score(rating, opponents) - points, low, high))


def interval(opponents: Array, pairs: Array, rounds: int = ROUNDS, seed: int = SEED) -> tuple[float, float]:
    """The 95% interval of a level's rating; arguments as for `fit`."""
    kinds = len(PAIR_SCORES)

    def rating(*drawn: Array) -> float:
        return fit(opponents, np.array([np.bincount(match, minlength=kinds) for match in drawn]))

    played = [np.repeat(np.arange(kinds), row) for row in pairs]
    dice = np.random.default_rng(seed)
    found = bootstrap(played, rating, n_resamples=rounds, vectorized=False, method="percentile", rng=dice)
    return float(found.confidence_interval.low), float(found.confidence_interval.high)


@dataclass(frozen=True)
class Measured:
    """A level and what the fit says of it."""

    level: int
    rating: float
    low: float
    high: float
    matches: tuple[Played, ...]


def measure(matches: Sequence[Played]) -> list[Measured]:
    """All levels, the weakest first."""
    found = []
    for level in sorted({match.level for match in matches}):
        own = tuple(sorted((match for match in matches if match.level == level), key=lambda match: match.opponent))
        opponents = np.array([match.opponent for match in own], float)
        pairs = np.array([match.pairs for match in own])
        found.append(Measured(level, fit(opponents, pairs), *interval(opponents, pairs), own))
    return found


def report(levels: Sequence[Measured]) -> str:
    """A table in Markdown: a row for each level."""
    lines = ["| `UCI_Elo` | measured | 95% | games against Stockfish's `UCI_Elo` |", "|---|---|---|---|"]
    for one in levels:
        totals: dict[int, Array] = {}
        for match in one.matches:
            totals[match.opponent] = totals.get(match.opponent, 0) + np.array([match.wins, match.draws, match.losses])
        games = ", ".join(f"{opponent}: +{won} ={drawn} -{lost}" for opponent, (won, drawn, lost) in totals.items())
        lines.append(f"| {one.level} | {one.rating:.0f} | {one.low:.0f} to {one.high:.0f} | {games} |")
    played = sum(match.wins + match.draws + match.losses for one in levels for match in one.matches)
    return "\n".join([*lines, "", f"{played} games"])


def plot(path: Path, levels: Sequence[Measured]) -> None:
    """Measured against nominal."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 4), layout="constrained")
    axes = figure.subplots()
    named, found = [one.level for one in levels], [one.rating for one in levels]
    errors = [[one.rating - one.low for one in levels], [one.high - one.rating for one in levels]]
    axes.plot(named, named, color="0.6", label="as named")
    axes.errorbar(named, found, errors, fmt="o", capsize=3, label="measured, 95%")
    axes.set_xlabel("UCI_Elo of psearch")
    axes.set_ylabel("on the scale of Stockfish's UCI_Elo")
    axes.legend()
    figure.savefig(path, dpi=120)


def main(arguments: list[str] | None = None) -> int:
    """Read, fit, print; 2 for bad input."""
    parser = argparse.ArgumentParser(
        description="Fit ratings to matches at limited strengths (see the head of this file)."
    )
    parser.add_argument("summaries", nargs="+", type=Path, help="PREFIX.json of match.py")
    parser.add_argument("--plot", type=Path, metavar="PNG", help="measured against nominal, as an image")
    options = parser.parse_args(arguments)
    try:
        if options.plot is not None:
            check_plot(options.plot)
        matches = [read_match(path) for path in options.summaries]
    except (ValueError, PsearchError) as error:
        print(f"fit_strength.py: {error}", file=sys.stderr)
        return 2
    levels = measure(matches)
    print(report(levels))
    if options.plot is not None:
        plot(options.plot, levels)
    return 0


if __name__ == "__main__":
    sys.exit(main())
