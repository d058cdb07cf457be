"""Labels positions near those of games by small searches: many more than games give, in the same time.

    python bench/training/label.py LABELS.samples GAMES.games ... [--nodes 100] [--fewest 1] [--most 4] [--jobs 2]
        [--minutes M] [--seed 1] [--pruning TEXT] [--network F.net]

From each searched ply of a game --fewest to --most random moves are made, each number once, and the position is kept
with the score of a search with a soft limit of nodes; not in check, and unless its best move takes or promotes. With no
random move it has the game's result, too. Games for testing are left out. The file grows by the positions of a block of
games; what has been labelled in the same way is not done again, and another seed adds other positions.

Exit status: 0, 2 bad input, 130 Ctrl-C (what is in the file stays).
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from netdata.commands import exit_status
from netdata.labelling import LabelFile, Labels, label_files
from netdata.playing import PRUNING, add_network, network_name

from psearch.faces.cli.numbers import whole_number

_SECONDS_A_LINE = 30.0


def _read(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, metavar="LABELS.samples")
    parser.add_argument("games", nargs="+", type=Path, metavar="GAMES.games")
    parser.add_argument("--nodes", type=whole_number(1, 10**6), default=100, metavar="N", help="of a search (100)")
    parser.add_argument("--fewest", type=whole_number(0, 100), default=1, metavar="N", help="random moves (1)")
    parser.add_argument("--most", type=whole_number(0, 100), default=4, metavar="N", help="random moves (4)")
    parser.add_argument("--jobs", type=whole_number(1, 256), default=2, metavar="N", help="processes (2)")
    parser.add_argument("--minutes", type=float, metavar="M", help="at most")
    parser.add_argument("--seed", type=whole_number(0, 10**9), default=1, metavar="N", help="of the random moves (1)")
    parser.add_argument("--pruning", default=PRUNING, metavar="TEXT", help=f"of the search ({PRUNING})")
    add_network(parser)
    options = parser.parse_args(words)
    if options.most < options.fewest:
        parser.error("--most must not be below --fewest")
    return options


def _run(options: argparse.Namespace) -> int:
    labels = Labels(
        options.nodes, options.fewest, options.most, options.seed, options.pruning, network_name(options.network)
    )
    since = told = time.monotonic()
    done = wanted = 0
    with closing(LabelFile(options.file)) as target:
        before = target.count

        def tell() -> None:
            seconds = time.monotonic() - since
            added = target.count - before
            print(
                f"{done:,} of {wanted:,} blocks, {target.count:,} positions, {added / seconds:,.0f} a second",
                file=sys.stderr,
                flush=True,
            )

        try:
            for done, wanted in label_files(options.games, labels, target, options.jobs, options.network):  # noqa: B007  # told below
                now = time.monotonic()
                if now - told >= _SECONDS_A_LINE:
                    told = now
                    tell()
                if options.minutes is not None and now - since >= 60 * options.minutes:
                    break
        finally:
            tell()
    return 0


def main(words: Sequence[str] | None = None) -> int:
    """Label; bad input is one line."""
    return exit_status("label.py", _run, _read(words))


if __name__ == "__main__":
    sys.exit(main())
