"""Durations of compiling, starting and searching, two installations of psearch in turn.

    python bench/speed/starting.py OLD NEW [--cold N] [--warm N] [--search N] > LOG.jsonl
    python bench/speed/starting.py --from-log LOG.jsonl

OLD and NEW are folders with `psearch` and `python` in them, like a virtual environment's `bin`. Every pair is a line of
the log: what, and seconds of both (or nodes per second). At the end, on stderr, the medians and the median ratio of the
pairs. Each has a kernel cache of its own, empty at first.

- cold: `psearch --depth 1 startpos` from an empty cache
- warm: the same again
- uci: `psearch uci` until `readyok`, and the end
- python: `import psearch; psearch.search("startpos", depth=1)`
- search: nanoseconds per node of searches of 30,000 nodes by one worker; the counts of nodes must be the same. A
  machine that others use is slower or faster by half from one second to the next, but rarely within such a pair: the
  median ratio of 1,000 pairs is good to a third of a percent.
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
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

SEARCH = ["psearch", "--depth", "1", "startpos"]
PYTHON = ["python", "-c", 'import psearch; psearch.search("startpos", depth=1)']
UCI = ["psearch", "uci"]
SEARCHES = """
import sys, chess, psearch
from psearch.bench import BENCH_POSITIONS
boards = [chess.Board(fen) for fen in BENCH_POSITIONS]
with psearch.Engine(threads=1, hash_mb=16) as engine:
    for number, _ in enumerate(sys.stdin):
        engine.new_game()
        found = engine.analyse(boards[number % len(boards)], chess.engine.Limit(nodes=30_000))
        print(found["nodes"], found["time"], flush=True)
"""


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

    @contextmanager
    def searcher(self) -> Iterator[Callable[[], tuple[int, float]]]:
        """Give a function that searches the next position, and returns nodes and seconds."""
        with subprocess.Popen(
            [str(self.folder / "python"), "-c", SEARCHES],
            env={**os.environ, "PSEARCH_CACHE_DIR": str(self.cache)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            asks, answers = process.stdin, process.stdout
            assert asks is not None and answers is not None

            def search() -> tuple[int, float]:
                print(file=asks, flush=True)
                nodes, seconds = answers.readline().split()
                return int(nodes), float(seconds)

            yield search

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
    with ExitStack() as stack:
        searchers = [stack.enter_context(one.searcher()) for one in pair]
        for number in range(counts.search):
            turn = (0, 1) if number % 2 else (1, 0)
            found = {which: searchers[which]() for which in turn}
            if found[0][0] != found[1][0]:
                raise SystemExit(f"not the same search: {found[0][0]} and {found[1][0]} nodes")
            yield "search", [found[which][1] / found[which][0] * 1e9 for which in range(2)]


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
    parser = argparse.ArgumentParser(description="Compiling, starting and searching, two installations in turn.")
    parser.add_argument("folders", type=Path, nargs="*", metavar="FOLDER", help="OLD and NEW")
    parser.add_argument("--from-log", type=Path, help="measure nothing, summarise this log")
    for name, count in (("cold", 3), ("warm", 10), ("search", 1000)):
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
