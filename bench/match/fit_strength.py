"""Rating of psearch's `UCI_Elo`, fitted to matches against Stockfish at its limited strengths.

    python bench/match/fit_strength.py docs/measurements/strength/first.jsonl

Each file is the summary of a match (PREFIX.json of match.py), or has one a line (.jsonl). Both engines have
`UCI_LimitStrength` and `UCI_Elo`. A level's rating is on the scale of Stockfish's `UCI_Elo` (60 s + 0.6 s, anchored to
CCRL 40/4).

**Model.** The expected score of a level with rating r against an opponent with nominal rating e is
1 / (1 + 10^((e - r) / 400)). Each r is fitted by maximum likelihood to all matches of its level, a draw counting as
half a win and half a loss. Each match gets one drawn game more, so that r is finite whatever the result.

**Intervals** (95%) are those of a bootstrap: pairs of games (one opening, both colours) are drawn again from each
match, and r is fitted again. They say nothing of what Stockfish's own scale may be off: play each level against
opponents as far above it as below.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matchplay.elo import PAIR_SCORES
from matchplay.scripts import Parser, run_script

from psearch.files.safe_files import json_value

try:
    from scipy.optimize import brentq
    from scipy.special import expit
    from scipy.stats import bootstrap
except ImportError:
    raise SystemExit("this needs scipy: pip install '.[study]'") from None

Array = np.ndarray[Any, Any]

_ROUNDS = 400
_SEED = 1
_PER_ELO = np.log(10) / 400
_PRIOR_GAMES = 1.0
_FARTHEST = 2000.0
"""from any opponent that a rating is looked for"""


class Played(NamedTuple):
    """One match, as its summary has it."""

    level: int
    """`UCI_Elo` of psearch"""
    opponent: int
    """`UCI_Elo` of Stockfish"""
    pairs: tuple[int, ...]
    """Numbers of pairs with 0, 1/2, 1, 3/2 and 2 points."""
    games: tuple[int, int, int]
    """Numbers of games won, drawn and lost."""


def read_matches(path: Path) -> list[Played]:
    """Read one summary, or one a line of .jsonl. Raises OSError, and ValueError with the name of a file of others."""
    text = path.read_text("utf-8")
    return [_match(part, path) for part in (text.splitlines() if path.suffix == ".jsonl" else [text])]


def _match(text: str, path: Path) -> Played:
    try:
        summary = json_value(text)
        sides = [summary["settings"][side]["options"] for side in ("first", "second")]
        pairs = tuple(map(int, summary["pairs"]))
        if any(side["UCI_LimitStrength"] != "true" for side in sides) or len(pairs) != len(PAIR_SCORES):
            raise ValueError
        level, opponent = (int(side["UCI_Elo"]) for side in sides)
        won, drawn, lost = (int(summary[name]) for name in ("wins", "draws", "losses"))
    except (KeyError, ValueError, TypeError, AttributeError, OverflowError):
        raise ValueError(f"{path}: not a summary of match.py with UCI_LimitStrength and UCI_Elo of both") from None
    if not str((summary.get("id_names") or ["psearch"])[0]).startswith("psearch"):
        raise ValueError(f"{path}: the first engine is not psearch, whose levels are rated")
    if not sum(pairs):
        raise ValueError(f"{path}: no complete pair of games")
    return Played(level, opponent, pairs, (won, drawn, lost))


def fit(opponents: Array, pairs: Array) -> float:
    """Return the rating of a level. opponents: their ratings; pairs: [match, kind], numbers of pairs.

    It is the one with which the points expected are those scored: there the likelihood has its only maximum.
    """
    games = 2 * pairs.sum(axis=1) + _PRIOR_GAMES
    points = float((2 * pairs @ np.array(PAIR_SCORES) + _PRIOR_GAMES / 2).sum())
    low, high = opponents.min() - _FARTHEST, opponents.max() + _FARTHEST
    return float(brentq(lambda rating: games @ expit(_PER_ELO * (rating - opponents)) - points, low, high))


def interval(opponents: Array, pairs: Array) -> tuple[float, float] | None:
    """Return the 95% interval of a level's rating; arguments as for `fit`. None where a match has one pair, or the
    pairs of each match are all alike: drawn again they would be the same."""
    kinds = len(PAIR_SCORES)
    if (pairs.sum(axis=1) < 2).any() or not (np.count_nonzero(pairs, axis=1) > 1).any():
        return None

    def rating(*drawn: Array) -> float:
        return fit(opponents, np.array([np.bincount(match, minlength=kinds) for match in drawn]))

    played = [np.repeat(np.arange(kinds), row) for row in pairs]
    dice = np.random.default_rng(_SEED)
    found = bootstrap(played, rating, n_resamples=_ROUNDS, vectorized=False, method="percentile", rng=dice)
    return float(found.confidence_interval.low), float(found.confidence_interval.high)


def run(words: Sequence[str] | None = None) -> int:
    """Read, fit, and print a table in Markdown: a row for each level, the weakest first."""
    parser = Parser(__doc__)
    parser.add_argument("summaries", nargs="+", type=Path, help="PREFIX.json of match.py, or .jsonl")
    matches = [match for path in parser.parse_args(words).summaries for match in read_matches(path)]
    print("| `UCI_Elo` | measured | 95% | games against Stockfish's `UCI_Elo` |\n|---|---|---|---|")
    for level in sorted({match.level for match in matches}):
        own = sorted((match for match in matches if match.level == level), key=lambda match: match.opponent)
        arrays = np.array([match.opponent for match in own], float), np.array([match.pairs for match in own])
        found = interval(*arrays)
        between = "no interval" if found is None else f"{found[0]:.0f} to {found[1]:.0f}"
        totals = {
            opponent: np.sum([match.games for match in own if match.opponent == opponent], axis=0)
            for opponent in dict.fromkeys(match.opponent for match in own)
        }
        games = ", ".join(f"{opponent}: +{won} ={drawn} -{lost}" for opponent, (won, drawn, lost) in totals.items())
        print(f"| {level} | {fit(*arrays):.0f} | {between} | {games} |")
    print(f"\n{sum(sum(match.games) for match in matches)} games")
    return 0


if __name__ == "__main__":
    sys.exit(run_script("fit_strength"))
