"""What psearch's `UCI_Elo` is worth, fitted to matches against Stockfish at its limited strengths.

    python bench/match/fit_strength.py docs/measurements/strength/*.json [--plot FILE.png]

Each file is the summary of a match (PREFIX.json of match.py) in which both engines have `UCI_LimitStrength` and
`UCI_Elo`. A level's rating is the `UCI_Elo` of the Stockfish that it would score half against: the scale is
Stockfish's (60 s + 0.6 s, anchored to CCRL 40/4), for opponents near the level.

**Model.** The expected score of a level with rating r against an opponent with nominal rating e is
1 / (1 + 10^(-k (r - e) / 400)). All r and the one k are fitted by maximum likelihood, a draw counting as half a win and
half a loss; k = 1 if differences on Stockfish's scale are worth what Elo says. Each match gets one drawn game more, so
that a rating is finite whatever the result.

**Intervals** (95%) are those of a bootstrap: pairs of games (one opening, both colours) are drawn again from each
match, and everything is fitted again. They say nothing of what Stockfish's own scale may be off.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matchplay.elo import PAIR_SCORES
from scipy.optimize import minimize
from scipy.special import expit, log_expit

from psearch.results import PsearchError
from psearch.studies.plots import check_plot

Array = np.ndarray[Any, Any]

ROUNDS = 400
SEED = 1
_PER_ELO = np.log(10) / 400
_PRIOR_GAMES = 1.0
_STEEPNESS_SD = 0.5
"""of log k, around 0, by a normal prior: with few games k and the ratings cannot be told apart"""


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
        summary = json.loads(path.read_text("utf-8"))
        sides = [summary["settings"][side]["options"] for side in ("first", "second")]
        if any(side["UCI_LimitStrength"] != "true" for side in sides):
            raise ValueError("UCI_LimitStrength is not true for both")
        pairs = tuple(summary["pairs"])
        if len(pairs) != len(PAIR_SCORES) or not sum(pairs):
            raise ValueError("no complete pair of games")
        level, opponent = (int(side["UCI_Elo"]) for side in sides)
        return Played(level, opponent, pairs, summary["wins"], summary["draws"], summary["losses"])
    except (KeyError, TypeError, AttributeError):
        raise ValueError(f"{path}: not a summary of match.py with UCI_LimitStrength and UCI_Elo of both") from None
    except ValueError as error:  # what is no JSON, too
        raise ValueError(f"{path}: {error}") from None
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from None


def fit(matches: Sequence[Played], pairs: Array) -> tuple[dict[int, float], float]:
    """The rating of each level, and k. pairs: [match, kind], which may be other numbers than those in `matches`."""
    levels = sorted({match.level for match in matches})
    which = np.array([levels.index(match.level) for match in matches])
    opponent = np.array([match.opponent for match in matches], float)
    won = 2 * pairs @ np.array(PAIR_SCORES) + _PRIOR_GAMES / 2
    lost = 2 * pairs @ (1 - np.array(PAIR_SCORES)) + _PRIOR_GAMES / 2

    def minus_log_likelihood(parameters: Array) -> float:
        x = np.exp(parameters[-1]) * _PER_ELO * (parameters[which] * 1000 - opponent)
        prior = 0.5 * (parameters[-1] / _STEEPNESS_SD) ** 2
        return float(prior - won @ log_expit(x) - lost @ log_expit(-x))

    begin = np.array([*(opponent[which == index].mean() / 1000 for index in range(len(levels))), 0.0])
    found = minimize(minus_log_likelihood, begin, method="Nelder-Mead", options={"maxiter": 20_000, "xatol": 1e-4})
    if not found.success:
        raise RuntimeError(f"no fit: {found.message}")
    return dict(zip(levels, found.x[:-1] * 1000, strict=True)), float(np.exp(found.x[-1]))


def intervals(matches: Sequence[Played], rounds: int = ROUNDS, seed: int = SEED) -> dict[int, tuple[float, float]]:
    """The 95% interval of each level's rating."""
    dice = np.random.default_rng(seed)
    totals = [sum(match.pairs) for match in matches]
    shares = [np.array(match.pairs) / total for match, total in zip(matches, totals, strict=True)]
    drawn = []
    for _ in range(rounds):
        again = np.array([dice.multinomial(total, share) for total, share in zip(totals, shares, strict=True)])
        drawn.append(fit(matches, again)[0])
    return {
        level: tuple(float(end) for end in np.percentile([one[level] for one in drawn], (2.5, 97.5)))
        for level in drawn[0]
    }


def expected_score(rating: float, opponent: float, steepness: float) -> float:
    """Of a level against an opponent, 0 to 1."""
    return float(expit(steepness * _PER_ELO * (rating - opponent)))


def report(matches: Sequence[Played], ratings: dict[int, float], k: float, ends: dict[int, tuple[float, float]]) -> str:
    """A table in Markdown: a row for each level."""
    lines = [
        "| `UCI_Elo` | measured | 95% interval | games: Stockfish's `UCI_Elo`, +won =drawn -lost |",
        "|---|---|---|---|",
    ]
    for level, rating in ratings.items():
        played = sorted((match for match in matches if match.level == level), key=lambda match: match.opponent)
        games = ", ".join(f"{match.opponent}: +{match.wins} ={match.draws} -{match.losses}" for match in played)
        low, high = ends[level]
        lines.append(f"| {level} | {rating:.0f} | {low:.0f} to {high:.0f} | {games} |")
    worst = max(
        abs(
            np.dot(match.pairs, PAIR_SCORES) / sum(match.pairs)
            - expected_score(ratings[match.level], match.opponent, k)
        )
        for match in matches
    )
    games_played = sum(match.wins + match.draws + match.losses for match in matches)
    lines += [
        "",
        f"{games_played} games; k = {k:.2f}; largest difference between a match's score and the fit's {worst:.0%}",
    ]
    return "\n".join(lines)


def plot(path: Path, ratings: dict[int, float], ends: dict[int, tuple[float, float]]) -> None:
    """Measured against nominal."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 4), layout="constrained")
    axes = figure.subplots()
    levels = np.array(list(ratings))
    found = np.array(list(ratings.values()))
    errors = np.array([[found[i] - ends[level][0], ends[level][1] - found[i]] for i, level in enumerate(ratings)]).T
    axes.plot(levels, levels, color="0.6", label="as named")
    axes.errorbar(levels, found, errors, fmt="o", capsize=3, label="measured, 95%")
    axes.set_xlabel("UCI_Elo of psearch")
    axes.set_ylabel("UCI_Elo of the Stockfish it scores half against")
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
    ratings, k = fit(matches, np.array([match.pairs for match in matches]))
    ends = intervals(matches)
    print(report(matches, ratings, k, ends))
    if options.plot is not None:
        plot(options.plot, ratings, ends)
    return 0


if __name__ == "__main__":
    sys.exit(main())
