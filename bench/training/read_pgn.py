"""Adds positions of published games, whose comments have scores and lines, to a file of labels.

    python bench/training/read_pgn.py LABELS.samples FILE.pgn ... [--seed 1]

Comments as in TCEC's games (github.com/TCEC-Chess/tcecgames, by the TCEC organization, CC BY-SA 3.0). A position that a
game came to has the score of the player to move there; positions of the line that the player expected have the same
score, seen from the other side where that is to move; half of them are taken, to the 20th ply. Not in check, and
unless the next move takes or promotes. Scores are scaled, file by file, as large beside the evaluation by hand as those
of the project's own searches are; results are left out, for such players draw nearly everything.

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
from netdata.labelling import LabelFile, Labels
from netdata.pgn import PgnReader

from psearch.faces.cli.numbers import whole_number


def _read(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, metavar="LABELS.samples")
    parser.add_argument("games", nargs="+", type=Path, metavar="FILE.pgn")
    parser.add_argument("--seed", type=whole_number(0, 10**9), default=1, metavar="N", help="which positions (1)")
    return parser.parse_args(words)


def _run(options: argparse.Namespace) -> int:
    since = time.monotonic()
    labels = Labels(nodes=0, fewest=0, most=0, seed=options.seed, pruning="")
    reader = PgnReader(options.seed)
    with closing(LabelFile(options.file)) as target:
        for path in options.games:
            if (path.stem, *labels) not in target.done:
                target.append(path.stem, labels, reader.text(path.read_text("latin-1")))
        if reader.left_out:
            print(f"{reader.left_out:,} games left out, which begin with what is no legal position", file=sys.stderr)
        print(f"{target.count:,} positions in {options.file}; {time.monotonic() - since:.0f} s")
    return 0


def main(words: Sequence[str] | None = None) -> int:
    """Read; bad input is one line."""
    return exit_status("read_pgn.py", _run, _read(words))


if __name__ == "__main__":
    sys.exit(main())
