"""Where do I lose my games? Reviews a PGN and counts blunders by opening and by the time on the clock.

python my_games.py games.pgn NAME [NODES]
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import chess.engine

import psearch


def blunders(path: Path, name: str, nodes: int) -> tuple[Counter[str], Counter[str]]:
    """Return the blunders of a player by opening, and by the time left."""
    by_opening: Counter[str] = Counter()
    by_time: Counter[str] = Counter()
    with psearch.review_many(path, chess.engine.Limit(nodes=nodes)) as reviews:
        for review in reviews:
            headers = review.work.game.headers
            side = "white" if headers.get("White") == name else "black"
            for row in review.to_rows():
                if row["side"] == side and row["mark"] == "??":
                    by_opening[row["opening"] or "?"] += 1
                    clock = row["clock_s"]
                    by_time["no clock" if clock is None else "under a minute" if clock < 60 else "enough"] += 1
    return by_opening, by_time


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit("usage: python my_games.py games.pgn NAME [NODES]")
    found = blunders(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 100_000)
    for title, counts in zip(("opening", "time left"), found, strict=True):
        print(title)
        for what, count in counts.most_common() or [("blunders", 0)]:
            print(f"  {count:4} {what}")
