"""Packs the names of openings: python bench/study/pack_openings.py a.tsv b.tsv ... > openings.tsv.xz

The tables are those of https://github.com/lichess-org/chess-openings (CC0), with columns eco, name and pgn.
"""

from __future__ import annotations

import argparse
import csv
import io
import lzma
import sys

import chess.pgn

from psearch.text.openings import opening_key


def main() -> None:
    """Write a line with key, ECO code and name for each opening."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="+", metavar="FILE.tsv")
    lines = []
    for path in parser.parse_args().tables:
        with open(path, encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file, delimiter="\t"):
                game = chess.pgn.read_game(io.StringIO(row["pgn"]))
                assert game is not None
                lines.append(f"{opening_key(game.end().board())}\t{row['eco']}\t{row['name']}\n")
    sys.stdout.buffer.write(lzma.compress("".join(lines).encode(), preset=9))


if __name__ == "__main__":
    main()
