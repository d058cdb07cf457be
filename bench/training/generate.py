"""Games of psearch against itself, from which a net is trained.

    python bench/training/generate.py GAMES.games [--nodes 1500] [--jobs 2] [--games N] [--minutes M] [--seed 1]
        [--pruning TEXT] [--network F.net] [--book FILE ...]
    python bench/training/generate.py --report FILE ...

Each process plays blocks of 64 games, one worker a game, with a soft limit of nodes for each move: the iteration during
which they are passed is the last. Late move pruning is off: in small searches it does not see the other side's replies,
and scores are too high by half a pawn. A game begins with 8 to 12 random moves, half of all games at the start
position, a quarter at a position of the books (with up to 5 random moves more), 15% where one or two pieces are
missing, a tenth in Chess960. How games end: `netdata/playing.py`; the file: `netdata/blocks.py`.

The file grows by whole blocks. A run that ends, in whatever way, loses the blocks that are being played; the same
command goes on where it was. Games depend on seed, nodes, books and the search alone: a run with the same settings is
the same. Run it as `nice -n 19` beneath other work.

Exit status: 0, 2 bad input, 130 Ctrl-C (what is in the file stays).
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from netdata.blocks import Appender, Block, read_blocks
from netdata.commands import EXIT_INTERRUPTED, exit_status
from netdata.openings import Book, read_books
from netdata.playing import PRUNING, Settings, Table, add_network, network_name
from netdata.reader import Reader
from netdata.records import ADJUDICATED, BY_RULE, GAMES, TOO_LONG

from psearch.faces.cli.numbers import whole_number
from psearch.processes.task_processes import share_out
from psearch.results import PsearchError
from psearch.scheduler.scheduler_entries import load_kernels

_GAMES_A_BLOCK = 64
_BOOKS = [Path(__file__).parent / "books" / name for name in ("2moves_v1.epd", "endgames.epd")]
_EDGES = np.array([0, 25, 50, 100, 200, 400, 800, 1500, 2500, 32000])
_SECONDS_A_LINE = 60.0


class Totals:
    """What has been played."""

    def __init__(self) -> None:
        self.games = 0
        self.searched = 0
        self.usable = 0
        self.plies = 0
        self.results = np.zeros(3, np.int64)
        self.endings = np.zeros(3, np.int64)
        self.scores = np.zeros(len(_EDGES) - 1, np.int64)

    def add(self, block: Block, usable: int) -> None:
        """Count a block."""
        self.games += len(block.games)
        self.searched += block.searched
        self.usable += usable
        for game in block.games:
            self.plies += len(game.ranks)
            self.results[game.result] += 1
            self.endings[game.ending] += 1
            self.scores += np.histogram(np.abs(game.scores.astype(int)), _EDGES)[0]

    def line(self) -> str:
        """Return the counts in one line."""
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


def _commit() -> str:
    """The commit that plays; with "+" where files of the search differ from it."""
    folder = Path(__file__).parents[2]

    def git(*words: str) -> str:
        return subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, check=True).stdout

    try:
        changed = git("status", "--porcelain", "--", "core", "parallel", "bench/training/netdata")
        return git("rev-parse", "--short=10", "HEAD").strip() + ("+" if changed.strip() else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _make(settings: Settings, book: Book, network: str | None) -> Callable[[int], Block]:
    return Table(settings, book, network).play


def _read(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", type=Path, metavar="GAMES.games", help="what the games are added to")
    parser.add_argument("--nodes", type=whole_number(100, 10**7), default=1500, metavar="N", help="of a move (1500)")
    parser.add_argument("--jobs", type=whole_number(1, 256), default=2, metavar="N", help="processes (2)")
    parser.add_argument("--games", type=whole_number(1, 10**8), default=10**6, metavar="N", help="in the file (10^6)")
    parser.add_argument("--minutes", type=float, metavar="M", help="at most")
    parser.add_argument("--seed", type=whole_number(0, 10**9), default=1, metavar="N")
    parser.add_argument("--pruning", default=PRUNING, metavar="TEXT", help=f"of the search ({PRUNING})")
    parser.add_argument("--book", nargs="*", type=Path, default=_BOOKS, metavar="FILE", help="FEN or EPD")
    add_network(parser)
    parser.add_argument("--report", nargs="+", type=Path, metavar="FILE", help="what is in these files")
    options = parser.parse_args(words)
    if (options.file is None) == (options.report is None):
        parser.error("name one file of games, or --report")
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


class _Screen:
    """How far the run is: one table that stays in its place on a terminal, a line a minute elsewhere."""

    def __init__(self, totals: Totals) -> None:
        self._totals = totals
        self._begin = self._told = time.monotonic()
        self._usable = totals.usable
        self._live: Any = None
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.live import Live

            self._live = Live(console=Console(stderr=True), auto_refresh=False)
            self._live.start()

    def _pace(self) -> str:
        seconds = time.monotonic() - self._begin
        an_hour = (self._totals.usable - self._usable) * 3600 / max(seconds, 1e-9)
        return f"{an_hour:,.0f} usable positions an hour, for {seconds / 60:.1f} minutes"

    def show(self) -> None:
        """Tell of a block that has come."""
        if self._live is not None:
            self._live.update(f"{self._totals.table()}\n{self._pace()}; Ctrl-C ends it", refresh=True)
        elif time.monotonic() - self._told >= _SECONDS_A_LINE:
            self._told = time.monotonic()
            print(f"{self._totals.line()}; {self._pace()}", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Leave what it said last."""
        if self._live is not None:
            self._live.stop()
        print(f"{self._totals.line()}; {self._pace()}", file=sys.stderr, flush=True)


def _generate(options: argparse.Namespace) -> int:
    book = read_books(options.book)
    settings = Settings(
        options.seed,
        options.nodes,
        _GAMES_A_BLOCK,
        _commit(),
        book.digest,
        options.pruning,
        network_name(options.network),
    )
    reader = Reader()
    load_kernels(GAMES)
    totals = Totals()

    def check(header: dict[str, Any]) -> None:
        if Settings.of_header(header)._replace(commit=settings.commit) != settings:
            raise PsearchError(
                f"{options.file} has games of another seed, book, pruning or number of nodes: name another file"
            )

    target = Appender(options.file, check)
    with closing(target):
        if target.cut:
            print(f"{options.file}: {target.cut:,} bytes of a torn block at its end are cut off", file=sys.stderr)
        done = set()
        for block in read_blocks(options.file):
            done.add(block.header["block"])
            totals.add(block, len(reader.block(block)[0]))
        wanted = [number for number in range(-(-options.games // settings.games)) if number not in done]
        if not wanted:
            print(totals.table())
            return 0
        screen = _Screen(totals)
        until = None if options.minutes is None else time.monotonic() + 60 * options.minutes
        status = 0
        try:
            for block in _played(settings, book, wanted, options.jobs, options.network):
                target.append(block)
                totals.add(block, len(reader.block(block)[0]))
                screen.show()
                if until is not None and time.monotonic() >= until:
                    break
        except KeyboardInterrupt:
            status = EXIT_INTERRUPTED
        finally:
            screen.close()
    return status


def _played(settings: Settings, book: Book, wanted: Sequence[int], jobs: int, network: str | None) -> Iterator[Block]:
    with closing(share_out(partial(_make, settings, book, network), wanted, jobs)) as answers:
        for _, block in answers:
            yield block


def _run(options: argparse.Namespace) -> int:
    return _report(options.report) if options.report else _generate(options)


def main(words: Sequence[str] | None = None) -> int:
    """Play or report; bad input is one line."""
    return exit_status("generate.py", _run, _read(words))


if __name__ == "__main__":
    # under its own name, by which other processes know its functions
    sys.exit(import_module("generate").main())
