"""Policies against each other in games of virtual time, at equal time: what decides how work is shared.

    python bench/match/gate.py --book FILE --out FOLDER
    python bench/match/gate.py --book FILE --out FOLDER --workers 8 --nodes 20000,60000 --games 200 --costs far
    python bench/match/gate.py --out FOLDER --table

Plays `--first` against each of `--second` for all --workers, all --nodes (of one worker in the time for a move) and
both kinds of --costs, cell after cell: *far* are the defaults, of two cores that share no cache, *near* those of two
cores that do. Each cell is a log of `odds.py` in the folder, and a run that was ended goes on where it was. Cells are
played in rounds of --round games, so that a run which is cut short has some of each, and first those that take least
time. --limit stops a cell at fewer games where a move has many nodes: 200000=100,1000000=60.

The table has Elo with 95% intervals by pairs of games (pentanomial), for each number of workers and each budget.

Exit status: 0, 2 bad input, 130 Ctrl-C (every finished game is kept).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from matchplay.elo import strength
from matchplay.scripts import EXIT_INTERRUPTED, MatchError, Parser, run_script
from matchplay.tally import elo_text
from odds import Game, pair_counts
from odds import run as play_odds

from psearch.defaults import DEFAULT_POLICY, MAX_THREADS
from psearch.faces.cli.arguments import whole_number
from psearch.files.raw_log import read_log

_NEAR = Path(__file__).parents[2] / "docs/measurements/study-selective/costs-near.json"
_COSTS = ("far", "near")


@dataclass(frozen=True)
class Cell:
    """A match of the table."""

    first: str
    second: str
    workers: int
    nodes: int
    costs: str

    @property
    def name(self) -> str:
        """Return the name of its log."""
        first, second = (side.replace(",", "+").replace("=", "") for side in (self.first, self.second))
        return f"{self.workers}-{first}-{second}-{self.nodes}-{self.costs}"

    def played(self, folder: Path) -> list[Game]:
        """Return the games of its log so far. Raises PsearchError for a log that is none."""
        log = folder / f"{self.name}.jsonl"
        return read_log(log, Game, is_begun=True)[0] if log.exists() else []

    def words(self, options: argparse.Namespace, games: int) -> list[str]:
        """Return the command line of `odds.py` that plays it as far as so many games."""
        log = options.out / f"{self.name}.jsonl"
        return [
            *("--first", f"{self.workers},{self.first}", "--second", f"{self.workers},{self.second}"),
            *("--odds", "1", "--nodes", str(self.nodes), "--games", str(games), "--hash", str(options.hash)),
            *("--book", *map(str, options.book), "--jobs", str(options.jobs), "--seed", str(options.seed)),
            *(("--costs", str(_NEAR)) if self.costs == "near" else ()),
            *("--out", str(log), *(("--resume",) if log.exists() else ())),
        ]


def _numbers(text: str) -> list[int]:
    return [whole_number(1, 10**9)(word) for word in text.split(",")]


def _limits(text: str) -> dict[int, int]:
    number = whole_number(2, 10**9)
    try:
        return {number(nodes): number(games) for nodes, games in (word.split("=") for word in text.split(",") if word)}
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be NODES=GAMES with commas between them, not {text[:40]!a}") from None


def _read(words: Sequence[str] | None) -> argparse.Namespace:
    parser = Parser(description=__doc__)
    parser.add_argument("--first", default=DEFAULT_POLICY, metavar="POLICY[,..]", help=f"({DEFAULT_POLICY})")
    parser.add_argument("--second", default="lazy ybw", metavar="'POLICY[,..] ..'", help="('lazy ybw')")
    parser.add_argument("--workers", type=_numbers, default=[2, 4, 8, 32], metavar="N,N..", help="(2,4,8,32)")
    parser.add_argument("--nodes", type=_numbers, default=[20_000, 60_000, 200_000, 1_000_000], metavar="N,N..")
    parser.add_argument("--costs", choices=(*_COSTS, "both"), default="both", help="(both)")
    parser.add_argument("--games", type=whole_number(2, 10**6), default=200, metavar="N", help="of a cell (200)")
    parser.add_argument("--limit", type=_limits, default={200_000: 100, 1_000_000: 60}, metavar="NODES=GAMES,..")
    parser.add_argument("--round", type=whole_number(2, 10**6), default=20, metavar="N", help="games (20)")
    parser.add_argument("--book", nargs="+", type=Path, default=[], metavar="FILE", help="EPD, FEN or PGN")
    parser.add_argument("--hash", type=whole_number(1, 2**16), default=16, metavar="MIB", help="a side (16)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the order of the openings (1)")
    parser.add_argument("--jobs", type=whole_number(1, 256), default=1, metavar="N", help="processes (1)")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="where the logs are")
    parser.add_argument("--table", action="store_true", help="play nothing")
    return parser.parse_args(words)


def cells(options: argparse.Namespace) -> list[Cell]:
    """Return the matches of the table, those that take least time first."""
    costs = _COSTS if options.costs == "both" else (options.costs,)
    found = [
        Cell(options.first, second, workers, nodes, kind)
        for nodes in options.nodes
        for workers in options.workers
        for second in options.second.split()
        for kind in costs
    ]
    if max(options.workers) > MAX_THREADS:
        raise MatchError(f"there are at most {MAX_THREADS} workers")
    return sorted(found, key=lambda cell: cell.nodes * cell.workers)


def rounds(options: argparse.Namespace) -> Iterator[tuple[Cell, int]]:
    """Yield what is to be played next: a cell, and the number of games that it then has."""
    for games in range(options.round, options.games + options.round, options.round):
        for cell in cells(options):
            most = min(options.games, options.limit.get(cell.nodes, options.games))
            if games - options.round < most:
                yield cell, min(games, most)


def table(options: argparse.Namespace) -> str:
    """Return the table in Markdown: a row for each match that has been played."""
    lines = [
        "| first, second | workers | costs | nodes a move | games | pairs of 0, 1/2, 1, 3/2, 2 points | Elo (95%) |",
        "|---|---|---|---|---|---|---|",
    ]
    for cell in sorted(cells(options), key=lambda cell: (cell.second, cell.costs, cell.workers, cell.nodes)):
        counts = pair_counts(cell.played(options.out)).get(1.0, [])
        found = strength(counts) if counts else None
        if found is not None:
            lines.append(
                f"| `{cell.first}`, `{cell.second}` | {cell.workers} | {cell.costs} | {cell.nodes:,} "
                f"| {2 * found.pairs} | {counts} | {elo_text(found)} |"
            )
    return "\n".join(lines)


def run(words: Sequence[str] | None = None) -> int:
    """Play, and print the table."""
    options = _read(words)
    if not options.table:
        if not options.book:
            raise MatchError("--book FILE is needed, or --table")
        options.out.mkdir(parents=True, exist_ok=True)
        for cell, games in rounds(options):
            if len(cell.played(options.out)) >= games:
                continue
            print(f"{cell.name}: to {games} games", file=sys.stderr)
            if play_odds(cell.words(options, games)) == EXIT_INTERRUPTED:
                return EXIT_INTERRUPTED
    print(table(options))
    return 0


if __name__ == "__main__":
    sys.exit(run_script("gate"))
