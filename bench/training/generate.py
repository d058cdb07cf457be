"""Games of psearch against itself, from which a net is trained.

    python bench/training/generate.py GAMES.games [--nodes 1500] [--jobs 2] [--games N] [--minutes M] [--seed 1]
        [--pruning TEXT] [--network F.net] [--book FILE ...] [--starts GAMES.pgn ... [--men N] | --follow GAMES.pgn ...]
    python bench/training/generate.py --report FILE ...
    python bench/training/generate.py --manifest FILE ... [--into FOLDER]
    python bench/training/generate.py --again [FILE ...] [--network F.net]

Each process plays blocks of 64 games, one worker a game, with a soft limit of nodes for each move: the iteration
during which they are passed is the last. Late move pruning is off: in small searches it does not see the other
side's replies, and scores are too high by half a pawn. A game begins with 8 to 12 random moves, half of all games
at the start position, a quarter at a position of the books (with up to 5 random moves more), 15% where one or two
pieces are missing, a tenth in Chess960. With --starts three quarters of all games begin in positions of these PGN
files, the others so: positions that strong players reach are seldom in its own games. With --men N these
positions have at most N men, pawns and kings included, so that balanced endings are played. How games end:
`netdata/playing.py`; the file: `netdata/blocks.py`.

The file grows by whole blocks. A run that ends, in whatever way, loses the blocks that are being played; the same
command goes on where it was. Games depend on seed, nodes, books and the search alone: a run with the same settings is
the same. Run it as `nice -n 19` beneath other work.

With --follow the games are those of PGN files, and only the scores are psearch's. --again leaves such blocks out.

Files of games are not kept with the project. --manifest writes what is needed to play them again into `games/`, with
one block in a thousand; --again plays the blocks of files (those of the manifest) and compares.

Exit status: 0, 1 a block came out differently, 2 bad input, 130 Ctrl-C (what is in the file stays).
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from netdata import EXIT_INTERRUPTED, Parser, manifest, run_script
from netdata.blocks import Appender, Block, read_blocks
from netdata.playing import (
    FOLLOWED_PLIES,
    PRUNING,
    Book,
    Played,
    Settings,
    Table,
    digest_of,
    network_name,
    read_books,
    read_played,
)
from netdata.reader import Reader
from netdata.records import ADJUDICATED, BY_RULE, GAMES, TOO_LONG

from psearch.faces.cli.arguments import whole_number
from psearch.files.raw_log import source_commit
from psearch.processes.task_processes import share_out
from psearch.results import PsearchError
from psearch.scheduler.scheduler_entries import load_kernels
from psearch.terminal.status import StatusLine

EXIT_DIFFERENT = 1
_GAMES_A_BLOCK = 64
_BOOKS = [Path(__file__).parent / "books" / name for name in ("2moves_v1.epd", "endgames.epd")]
_EDGES = np.array([0, 25, 50, 100, 200, 400, 800, 1500, 2500, 32000])


class Totals:
    def __init__(self) -> None:
        self.games = 0
        self.searched = 0
        self.usable = 0
        self.plies = 0
        self.results = np.zeros(3, np.int64)
        self.endings = np.zeros(3, np.int64)
        self.scores = np.zeros(len(_EDGES) - 1, np.int64)

    def add(self, block: Block, usable: int) -> None:
        self.games += len(block.games)
        self.searched += block.searched
        self.usable += usable
        for game in block.games:
            self.plies += len(game.ranks)
            self.results[game.result] += 1
            self.endings[game.ending] += 1
            self.scores += np.histogram(np.abs(game.scores.astype(int)), _EDGES)[0]

    def line(self) -> str:
        return f"{self.games:,} games, {self.searched:,} positions with a score, {self.usable:,} usable"

    def table(self) -> str:
        """Return everything that was counted."""
        if not self.games:
            return "no games"
        share = 100 / self.games
        rows = [
            self.line(),
            f"length {self.plies / self.games:.0f} plies with the opening; White won {self.results[2] * share:.1f}%, "
            f"drawn {self.results[1] * share:.1f}%, Black won {self.results[0] * share:.1f}%",
            f"ended by rule {self.endings[BY_RULE] * share:.1f}%, adjudicated "
            f"{self.endings[ADJUDICATED] * share:.1f}%, too long {self.endings[TOO_LONG] * share:.1f}%",
            "scores, centipawns for either side:",
        ]
        most = max(int(self.scores.max()), 1)
        for low, high, count in zip(_EDGES, _EDGES[1:], self.scores, strict=False):
            bar = "#" * round(40 * int(count) / most)
            rows.append(f"  {low:>5} to {high:<5} {100 * count / max(self.searched, 1):5.1f}%  {bar}")
        return "\n".join(rows)


def _make(settings: Settings, book: Book, network: str | None, followed: list[Played]) -> Callable[[int], Block]:
    table = Table(settings, book, network)
    return partial(table.follow, followed) if followed else table.play


def _read(words: Sequence[str] | None) -> argparse.Namespace:
    parser = Parser(__doc__)
    parser.add_argument("file", nargs="?", type=Path, metavar="GAMES.games", help="what the games are added to")
    parser.add_argument("--nodes", type=whole_number(100, 10**7), default=1500, metavar="N", help="of a move (1500)")
    parser.add_argument("--jobs", type=whole_number(1, 256), default=2, metavar="N", help="processes (2)")
    parser.add_argument("--games", type=whole_number(1, 10**8), default=10**6, metavar="N", help="in the file (10^6)")
    parser.add_argument("--minutes", type=float, metavar="M", help="at most")
    parser.add_argument("--seed", type=whole_number(0, 10**9), default=1, metavar="N")
    parser.add_argument("--pruning", default=PRUNING, metavar="TEXT", help=f"of the search ({PRUNING})")
    parser.add_argument("--book", nargs="*", type=Path, default=_BOOKS, metavar="FILE", help="FEN or EPD")
    parser.add_argument("--starts", nargs="+", type=Path, default=(), metavar="FILE", help="PGN, to begin games in")
    parser.add_argument("--men", type=whole_number(3, 32), default=0, metavar="N", help="there, at most (any number)")
    parser.add_argument("--follow", nargs="+", type=Path, default=(), metavar="FILE", help="PGN, whose games to score")
    parser.add_argument(
        "--network",
        type=lambda text: None if text == "none" else text,
        default="",
        metavar="F.net",
        help="that evaluates (the one that ships); none: the handwritten evaluation",
    )
    parser.add_argument("--report", nargs="+", type=Path, metavar="FILE", help="what is in these files")
    parser.add_argument("--manifest", nargs="+", type=Path, metavar="FILE", help="describe these files")
    parser.add_argument("--into", type=Path, default=manifest.FOLDER, metavar="FOLDER", help="of the manifest (games)")
    parser.add_argument("--again", nargs="*", type=Path, metavar="FILE", help="play blocks again (the manifest's)")
    options = parser.parse_args(words)
    wanted = (options.file, options.report, options.manifest, options.again)
    if sum(what is not None for what in wanted) != 1:
        parser.error("name one file of games, or one of --report, --manifest and --again")
    if options.follow and options.starts:
        parser.error("--starts is for games that are played, --follow for games that are not")
    if options.men and not options.starts:
        parser.error("--men is for positions of --starts")
    if options.minutes is not None and not options.minutes > 0:
        parser.error("--minutes must be more than 0")
    return options


def _report(paths: Sequence[Path]) -> int:
    reader = Reader()
    everything = Totals()
    for path in paths:
        totals = Totals()
        runs: dict[str, int] = {}
        for block in read_blocks(path):
            usable = len(reader.block(block)[0])
            totals.add(block, usable)
            everything.add(block, usable)
            header = block.header
            run = f"{header.get('nodes')} nodes a move, seed {header.get('seed')}, commit {header.get('commit')}"
            runs[run] = runs.get(run, 0) + len(block.games)
        print(f"{path}: {path.stat().st_size / 2**20:.1f} MiB, {totals.line()}")
        for run, games in runs.items():
            print(f"  {games:,} games: {run}")
    print(everything.table())
    return 0


def _manifest(paths: Sequence[Path], folder: Path) -> int:
    for row in manifest.describe(paths, folder):
        print(f"{row['file']}: {row['all_games']:,} games, {row['usable']:,} usable positions, SHA-256 {row['sha256']}")
    return 0


def _again(options: argparse.Namespace) -> int:
    book = read_books(options.book, options.starts, options.men)
    name, commit = network_name(options.network), source_commit()
    load_kernels(GAMES)
    counts: dict[bool | None, int] = {}
    for path in options.again or [options.into / manifest.SAMPLES]:
        for text, is_same in manifest.play_again(path, book, options.network, name, commit):
            counts[is_same] = counts.get(is_same, 0) + 1
            print(text, flush=True)
    same, other, skipped = (counts.get(kind, 0) for kind in (True, False, None))
    print(f"{same} blocks the same, {other} different, {skipped} not played")
    return EXIT_DIFFERENT if other else 0


def _generate(options: argparse.Namespace) -> int:
    followed = read_played(options.follow)
    if options.follow:
        book = Book(digest=digest_of(options.follow))
    else:
        book = read_books(options.book, options.starts, options.men)
    most = min(options.games, len(followed)) if options.follow else options.games
    if not most or (options.starts and not book.played):
        reaching = f" that comes down to {options.men} men" if options.men else ""
        raise PsearchError(f"these files have no finished game of {FOLLOWED_PLIES} plies{reaching}")
    settings = Settings(
        options.seed,
        options.nodes,
        _GAMES_A_BLOCK,
        source_commit(),
        book.digest,
        options.pruning,
        network_name(options.network),
    )
    reader = Reader()
    load_kernels(GAMES)
    totals = Totals()

    def check(header: dict[str, Any]) -> None:
        # blocks from before there was a choice do not say all
        played = Settings(**{name: header[name] for name in Settings._fields if name in header})
        said = {**played.header(header["block"]), **header, "commit": settings.commit}
        if any(said[name] != value for name, value in settings.header(header["block"]).items()):
            raise PsearchError(
                f"{options.file} has games of another seed, book, pruning, rules or number of nodes: name another file"
            )

    target = Appender(options.file, check)
    with closing(target):
        if target.cut:
            print(f"{options.file}: {target.cut:,} bytes of a torn block at its end are cut off", file=sys.stderr)
        done = set()
        for block in read_blocks(options.file):
            done.add(block.header["block"])
            totals.add(block, len(reader.block(block)[0]))
        wanted = [number for number in range(-(-most // settings.games)) if number not in done]
        if not wanted:
            print(totals.table())
            return 0
        began = time.monotonic()
        before, status = totals.usable, 0
        make = partial(_make, settings, book, options.network, followed)
        try:
            with closing(share_out(make, wanted, options.jobs)) as answers, StatusLine() as screen:
                for _, block in answers:
                    target.append(block)
                    totals.add(block, len(reader.block(block)[0]))
                    minutes = (time.monotonic() - began) / 60
                    pace = f"{(totals.usable - before) / minutes * 60:,.0f} usable positions an hour"
                    screen(f"{totals.line()}; {pace}", totals.games, most)
                    if options.minutes is not None and minutes >= options.minutes:
                        break
        except KeyboardInterrupt:
            status = EXIT_INTERRUPTED
        print(totals.table())
    return status


def run(words: Sequence[str] | None = None) -> int:
    """Play, report, describe or play again; returns the exit status."""
    options = _read(words)
    if options.report:
        return _report(options.report)
    if options.manifest:
        return _manifest(options.manifest, options.into)
    return _generate(options) if options.again is None else _again(options)


if __name__ == "__main__":
    sys.exit(run_script("generate"))
