"""The ladder: games against other engines at 10 k, 40 k, 160 k and 640 k nodes a move for both sides.

    python bench/match/ladder.py --second "name=sf11 cmd=/opt/stockfish-11" --book FILE --out FOLDER
    python bench/match/ladder.py --second "name=sf11 cmd=/opt/stockfish-11" --out FOLDER --table

Each rung is a match of `match.py` in the folder; a run that was ended continues. Rungs are played in rounds of --round
games, so that a run which is cut short has some of each. One thread and a fixed number of nodes make both sides
deterministic: the load of the machine changes nothing. The figure to improve is the slope, in Elo for each doubling of
the nodes: a change tuned at few nodes that does not scale lowers it. Some engines look at their nodes too seldom for
small limits (Stockfish 6 every 5 ms); Stockfish 11 keeps to them.

Exit status: 0, 2 bad input, 130 Ctrl-C (every finished game is kept), 1 a complaint against psearch.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from match import run as play_match
from matchplay.elo import PAIR_SCORES, strength
from matchplay.scripts import MatchError, Parser, run_script
from matchplay.tally import elo_text

from psearch.faces.cli.arguments import whole_number
from psearch.files.safe_files import json_object

_NODES = (10_000, 40_000, 160_000, 640_000)
_Z = 1.96
"""Half the width of a 95% interval, in standard deviations."""


class Slope(NamedTuple):
    """Elo for each doubling of the nodes a move, and half the width of its 95% interval."""

    elo: float
    error: float


def _prefix(folder: Path, nodes: int) -> Path:
    return folder / f"{nodes}-nodes"


def _summary(folder: Path, nodes: int) -> dict[str, Any]:
    """Return the summary of a rung so far, an empty one where nothing has been played."""
    path = _prefix(folder, nodes).with_name(f"{nodes}-nodes.json")
    if not path.exists():
        return {"games": 0, "pairs": []}
    try:
        found = json_object(path.read_text("utf-8"))
        wrong = [one for one in (found["games"], *found["pairs"]) if type(one) is not int or one < 0]
        if wrong or len(found["pairs"]) != len(PAIR_SCORES):
            raise ValueError("these are no counts")
        return found
    except (ValueError, LookupError, TypeError):
        raise MatchError(f"{path} is no summary of a match: delete it, and the rung goes on from its log") from None


def slope(rungs: Sequence[tuple[int, Sequence[int]]]) -> Slope | None:
    """Fit a line to the Elo of rungs by the logarithm of their nodes, weighted by their errors.

    rungs: nodes a move and the five counts of pairs. None: with fewer than two rungs that have an interval.
    """
    found = [(math.log2(nodes), strength(counts)) for nodes, counts in rungs if counts]
    points = [(x, one.elo, (one.high - one.low) / (2 * _Z)) for x, one in found if one is not None]
    points = [point for point in points if all(map(math.isfinite, point)) and point[2] > 0]
    if len(points) < 2:
        return None
    x, elo, error = np.array(points).T
    weights = 1 / error**2
    spread = x - np.average(x, weights=weights)
    total = float((weights * spread**2).sum())
    return Slope(float((weights * spread * elo).sum()) / total, _Z / math.sqrt(total))


def table(folder: Path, nodes: Sequence[int]) -> str:
    """Return a row for each rung in Markdown, and the slope below."""
    lines = ["| nodes a move | games | pairs of 0, 1/2, 1, 3/2, 2 points | Elo (95%) |", "|---|---|---|---|"]
    rungs = [(number, _summary(folder, number)["pairs"]) for number in nodes]
    for number, counts in rungs:
        if counts and (found := strength(counts)) is not None:
            lines.append(f"| {number:,} | {2 * found.pairs} | {counts} | {elo_text(found)} |")
    if (fitted := slope(rungs)) is not None:
        lines.append(f"\nslope: {fitted.elo:+.1f} +- {fitted.error:.1f} Elo a doubling")
    return "\n".join(lines)


def run(words: Sequence[str] | None = None) -> int:
    """Play the rungs, and print the table."""
    parser = Parser(description=__doc__)
    parser.add_argument("--first", default="option.Hash=64", metavar="ENGINE", help="(this psearch, 64 MiB)")
    parser.add_argument("--second", required=True, metavar="ENGINE", help="as `match.py` takes it")
    parser.add_argument("--nodes", type=int, nargs="+", default=_NODES, metavar="N", help="(10000 40000 160000 640000)")
    parser.add_argument("--games", type=whole_number(2, 10**6), default=200, metavar="N", help="of a rung (200)")
    parser.add_argument("--round", type=whole_number(2, 10**6), default=20, metavar="N", help="games (20)")
    parser.add_argument("--concurrency", type=whole_number(1, 256), default=1, metavar="N", help="games at a time (1)")
    parser.add_argument("--book", type=Path, metavar="FILE", help="EPD, FEN or PGN")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="where the matches are")
    parser.add_argument("--table", action="store_true", help="play nothing")
    options = parser.parse_args(words)
    if not options.table and options.book is None:
        raise MatchError("--book FILE is needed, or --table")
    status = 0
    for games in () if options.table else range(options.round, options.games + options.round, options.round):
        for nodes in options.nodes:
            options.out.mkdir(parents=True, exist_ok=True)
            wanted, prefix = min(games, options.games), _prefix(options.out, nodes)
            if _summary(options.out, nodes)["games"] >= wanted:
                continue
            begun = prefix.with_suffix(".jsonl").exists()  # the summary comes only at the end of a round
            print(f"{nodes:,} nodes: to {wanted} games", file=sys.stderr)
            match = ["--first", options.first, "--second", options.second, "--nodes", str(nodes), "--seed", "1"]
            match += ["--games", str(wanted), "--concurrency", str(options.concurrency), "--book", str(options.book)]
            status = max(status, play_match([*match, "--out", str(prefix), *(["--resume"] if begun else [])]))
            if status > 1:
                return status
    print(table(options.out, options.nodes))
    return status


if __name__ == "__main__":
    sys.exit(run_script("ladder"))
