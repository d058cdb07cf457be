"""Durations of compiling and starting, two installations of psearch in turn.

    python bench/speed/starting.py OLD NEW [--cold N] [--warm N] [--bench N] > LOG.jsonl
    python bench/speed/starting.py --from-log LOG.jsonl

OLD and NEW are folders with `psearch` and `python` in them, like a virtual environment's `bin`. Every pair is a line of
the log: what, and seconds of both (or nodes per second). At the end, on stderr, the medians and the median ratio of the
pairs. Each has a kernel cache of its own, empty at first.

- cold: `psearch --depth 1 startpos` from an empty cache
- warm: the same again
- uci: `psearch uci` until `readyok`, and the end
- python: `import psearch; psearch.search("startpos", depth=1)`
- bench: nodes per second; the counts of nodes must be the same
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

SEARCH = ["psearch", "--depth", "1", "startpos"]
PYTHON = ["python", "-c", 'import psearch; psearch.search("startpos", depth=1)']
UCI = ["psearch", "uci"]
BENCH = ["psearch", "bench"]


class Installation:
    """One psearch, with a cache."""

    def __init__(self, folder: Path, cache: Path) -> None:
        self.folder = folder
        self.cache = cache

    def run(self, words: list[str], commands: str = "") -> tuple[float, str]:
        """Seconds and stdout of a program; commands: its input."""
        start = time.perf_counter()
        done = subprocess.run(
            [str(self.folder / words[0]), *words[1:]],
            env={**os.environ, "PSEARCH_CACHE_DIR": str(self.cache)},
            input=commands,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            check=True,
        )
        return time.perf_counter() - start, done.stdout

    def cold(self) -> float:
        shutil.rmtree(self.cache, ignore_errors=True)
        return self.run(SEARCH)[0]


def measure(pair: tuple[Installation, Installation], counts: argparse.Namespace) -> Iterator[tuple[str, list[float]]]:
    """Yield each figure's name and its two values, in turn."""
    for _ in range(counts.cold):
        yield "cold", [one.cold() for one in pair]
    for _ in range(counts.warm):
        yield "warm", [one.run(SEARCH)[0] for one in pair]
        yield "uci", [one.run(UCI, "uci\nisready\nquit\n")[0] for one in pair]
        yield "python", [one.run(PYTHON)[0] for one in pair]
    for _ in range(counts.bench):
        (old_nodes, *old), (new_nodes, *new) = (one.run(BENCH)[1].splitlines()[-1].split() for one in pair)
        if old_nodes != new_nodes:
            raise SystemExit(f"not the same search: {old_nodes} and {new_nodes} nodes")
        yield "bench", [float(old[1]), float(new[1])]


def summary(rows: list[tuple[str, list[float]]]) -> str:
    """Medians of both, and of the ratio within the pairs."""
    lines = [f"{'':8}{'pairs':>6}{'old':>12}{'new':>12}{'new / old':>11}"]
    for what in dict.fromkeys(name for name, _ in rows):
        pairs = [pair for name, pair in rows if name == what]
        old, new = (statistics.median(values) for values in zip(*pairs, strict=True))
        ratio = statistics.median(second / first for first, second in pairs)
        lines.append(f"{what:8}{len(pairs):>6}{old:>12,.2f}{new:>12,.2f}{ratio:>11.3f}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description="Compiling and starting, two installations in turn.")
    parser.add_argument("folders", type=Path, nargs="*", metavar="FOLDER", help="OLD and NEW")
    parser.add_argument("--from-log", type=Path, help="measure nothing, summarise this log")
    for name, count in (("cold", 3), ("warm", 10), ("bench", 10)):
        parser.add_argument(f"--{name}", type=int, default=count, metavar="N", help=f"pairs (default {count})")
    options = parser.parse_args()
    rows: list[tuple[str, list[float]]] = []
    if options.from_log is not None:
        lines = (json.loads(line) for line in options.from_log.read_text("utf-8").splitlines())
        rows = [(line["what"], line["pair"]) for line in lines if "what" in line]
    elif len(options.folders) == 2:
        with tempfile.TemporaryDirectory() as place:
            pair = tuple(Installation(folder, Path(place) / str(n)) for n, folder in enumerate(options.folders))
            for what, figures in measure((pair[0], pair[1]), options):
                rows.append((what, figures))
                print(json.dumps({"what": what, "pair": [round(figure, 3) for figure in figures]}), flush=True)
    else:
        parser.error("needs OLD and NEW, or --from-log")
    print(summary(rows), file=sys.stderr)


if __name__ == "__main__":
    main()
