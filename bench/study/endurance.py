"""Whether an engine that runs for days stays as it was: memory, descriptors, processes and threads, by the thousand.

    python bench/study/endurance.py --log endurance.jsonl
    python bench/study/endurance.py --parts games --subjects uci --games 1000 --movetime 100

One engine, first behind UCI in a process of its own, then `psearch.Engine` in this one, does one part after the other:

- searches: short ones of every kind (nodes, depth, time, clock, mate, several lines, stopped, pondered), the positions
  of `psearch bench` in turn;
- hash-changes: the table gets another size and its own again, each time with a search;
- games: against itself, from a few random moves on, until the rules end them or 300 plies are played. Every move is
  checked to be legal.

As it goes on it is measured, 40 times a part: anonymous pages of the program, those of its workers, shared memory, open
descriptors, processes, threads, and, of `Engine`, the objects that Python's collector knows. The log has a line for
each measurement, and at the end of a part one with the verdict.

The rule: a straight line is laid through the second half of the measurements. What it rises by from one end to the
other must be less than 1 MiB for pages of the program, the same for each of its workers and for shared memory; less
than 500 objects; and nothing at all, to the nearest whole, for descriptors, processes and threads. So a leak of 210
bytes a search is found in 10,000 searches. The exit status is 1 if a part is not flat.
"""

from __future__ import annotations

import argparse
import gc
import os
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import chess
import chess.engine
import numpy as np
from processes import PSEARCH, holdings, pid_of, start, stop

from psearch.api.blocking import Engine
from psearch.bench import BENCH_POSITIONS
from psearch.files.raw_log import RawLog
from psearch.results import PsearchError
from psearch.terminal.status import StatusLine

MEASUREMENTS = 40
"""Of a part."""
HASH_SIZES_MB = (1, 64, 16, 256)
LONGEST_GAME = 300
"""Plies."""
RANDOM_PLIES = 6
_BRIEF_S = 0.005
"""A search that is stopped lasts about so long."""

LIMITS: tuple[dict[str, Any], ...] = (
    {"nodes": 2000},
    {"depth": 6},
    {"time": _BRIEF_S},
    {"white_clock": 0.3, "black_clock": 0.3},
    {"mate": 1, "nodes": 2000},
    {"depth": 4, "multipv": 3},
    {"stopped": True},
    {"ponder": True, "time": _BRIEF_S},
)
"""Kinds of searches: fields of `chess.engine.Limit`, and how they are done."""

_MOST = {"program_kb": 1024.0, "workers_kb": 1024.0, "shared_kb": 1024.0, "objects": 500.0}
"""By how much a figure may grow and still be called flat; any other not at all, to the nearest whole."""


class Subject:
    """An engine that is looked at: behind UCI, or in this program. Both have the methods of python-chess."""

    def __init__(self, name: str, threads: int, hash_mb: int) -> None:
        self.name = name
        self._options = {"Threads": threads, "Hash": hash_mb}
        self._engine: Any = start(PSEARCH, self._options) if name == "uci" else Engine(threads, hash_mb)
        self._game = 0

    def search(self, board: chess.Board, how: dict[str, Any]) -> chess.Move:
        """Do one search of a kind of LIMITS, and return its move, which is legal."""
        words = ("multipv", "stopped", "ponder")
        limit = chess.engine.Limit(**{name: value for name, value in how.items() if name not in words})
        move: chess.Move | None
        if "stopped" in how:
            with self._engine.analysis(board, game=self._game) as analysis:
                time.sleep(_BRIEF_S)
                analysis.stop()
                move = analysis.wait().move
        elif "multipv" in how:
            move = self._engine.analyse(board, limit, multipv=how["multipv"], game=self._game)[0]["pv"][0]
        else:
            move = self._engine.play(board, limit, game=self._game, ponder="ponder" in how).move
        if move is None or move not in board.legal_moves:
            raise SystemExit(f"endurance: {move} is not legal in {board.fen()}")
        return move

    def set_hash(self, megabytes: int) -> None:
        """Give the table another size."""
        self._engine.configure({"Hash": megabytes})

    def new_game(self) -> None:
        """Have the next search forget everything."""
        self._game += 1

    def measure(self) -> dict[str, int]:
        """Return what it holds now."""
        self._engine.ping()
        if isinstance(self._engine, chess.engine.SimpleEngine):
            return holdings(pid_of(self._engine))
        gc.collect()
        return {**holdings(os.getpid()), "objects": len(gc.get_objects())}

    def close(self) -> None:
        """End it."""
        if not isinstance(self._engine, chess.engine.SimpleEngine):
            self._engine.close()
        elif (status := stop(self._engine)) != 0:
            raise SystemExit(f"endurance: the engine ended with status {status}")


# -- what it does ------------------------------------------------------------------------------------------------------


def searches(subject: Subject, options: argparse.Namespace) -> Iterator[int]:
    """Search each position in all kinds; yields how many are done."""
    for number in range(options.searches):
        fen = BENCH_POSITIONS[number // len(LIMITS) % len(BENCH_POSITIONS)]
        subject.search(chess.Board(fen, chess960=True), LIMITS[number % len(LIMITS)])
        yield number + 1


def hash_changes(subject: Subject, options: argparse.Namespace) -> Iterator[int]:
    """Change the table's size, each time with a search. Measured, and left, with the size that it began with."""
    for number in range(options.hash_changes):
        for megabytes in (HASH_SIZES_MB[number % len(HASH_SIZES_MB)], options.hash):
            subject.set_hash(megabytes)
            subject.search(chess.Board(), LIMITS[0])
        yield number + 1


def games(subject: Subject, options: argparse.Namespace) -> Iterator[int]:
    """Play games of the engine against itself."""
    limit = {"nodes": options.nodes} if options.nodes else {"time": options.movetime / 1000}
    for number in range(options.games):
        subject.new_game()
        board, dice = chess.Board(), random.Random(number)
        for _ in range(RANDOM_PLIES):
            board.push(dice.choice(list(board.legal_moves)))
        while not board.is_game_over(claim_draw=True) and len(board.move_stack) < LONGEST_GAME:
            board.push(subject.search(board, limit))
        yield number + 1


PARTS: dict[str, Callable[[Subject, argparse.Namespace], Iterator[int]]] = {
    "searches": searches,
    "hash-changes": hash_changes,
    "games": games,
}
SUBJECTS = ("uci", "engine")


# -- the verdict -------------------------------------------------------------------------------------------------------


def verdict(rows: Sequence[dict[str, int]], workers: int) -> dict[str, Any]:
    """Return, by figure: what it was at first, in the middle and last, its growth, and whether that is flat.

    It grows by what a straight line through the second half of the measurements rises by, from end to end.
    """
    found: dict[str, Any] = {}
    for name in rows[0]:
        values = [row[name] for row in rows]
        half = np.array(values[len(values) // 2 :], float)
        grown = 0.0 if len(half) < 2 else float(np.polyfit(np.arange(len(half)), half, 1)[0] * (len(half) - 1))
        most = _MOST.get(name, 0.5) * (workers if name == "workers_kb" else 1)
        found[name] = {
            "first": values[0],
            "middle": values[len(values) // 2],
            "last": values[-1],
            "growth": round(grown, 1),
            "flat": grown < most,
        }
    return found


def run_part(subject: Subject, part: str, options: argparse.Namespace, log: RawLog, status: StatusLine) -> bool:
    """Do a part, measure as it goes on, judge and print; returns whether it is flat."""
    count = int(getattr(options, part.replace("-", "_")))
    every = max(1, count // MEASUREMENTS)
    begun = time.monotonic()
    rows: list[dict[str, int]] = []
    for done in PARTS[part](subject, options):
        if done % every == 0 or done == count:
            rows.append(subject.measure())
            seconds = round(time.monotonic() - begun, 1)
            log.note(subject=subject.name, part=part, done=done, seconds=seconds, **rows[-1])
            held = ", ".join(f"{name} {value:,}" for name, value in rows[-1].items())
            status(f"{subject.name}, {part}: {done:,}/{count:,}, {held}", done, count)
    found = verdict(rows, options.threads)
    seconds = round(time.monotonic() - begun, 1)
    log.note(subject=subject.name, part=part, count=count, total_seconds=seconds, verdict=found)
    print(f"{subject.name}, {count:,} {part}")
    for figure, values in found.items():
        shown = f"{values['first']:>10,} {values['middle']:>10,} {values['last']:>10,}  {values['growth']:+9.1f}"
        print(f"  {figure:<12} {shown}  {'flat' if values['flat'] else 'GROWS'}", flush=True)
    return all(values["flat"] for values in found.values())


def some_of(names: Sequence[str]) -> Callable[[str], list[str]]:
    """Return the reader of a list of some of these names, separated by commas."""

    def read(text: str) -> list[str]:
        words = text.split(",")
        if set(words) - set(names):
            raise argparse.ArgumentTypeError(f"choose from {','.join(names)}")
        return words

    return read


def main(arguments: Sequence[str] | None = None) -> int:
    """Run; 0 if everything is flat."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", type=some_of(list(PARTS)), default=list(PARTS), metavar="PART,PART")
    parser.add_argument("--subjects", type=some_of(SUBJECTS), default=list(SUBJECTS), metavar="NAME,NAME")
    parser.add_argument("--searches", type=int, default=10_000, metavar="N")
    parser.add_argument("--hash-changes", type=int, default=200, metavar="N")
    parser.add_argument("--games", type=int, default=1_000, metavar="N")
    parser.add_argument("--movetime", type=float, default=100.0, metavar="MS", help="of a move of the games")
    parser.add_argument("--nodes", type=int, metavar="N", help="of a move of the games, instead of a time")
    parser.add_argument("--threads", type=int, default=2, metavar="N")
    parser.add_argument("--hash", type=int, default=16, metavar="MIB")
    parser.add_argument(
        "--log", type=Path, required=True, metavar="FILE", help="JSON lines; a file that is there is replaced"
    )
    options = parser.parse_args(arguments)
    settings = {name: value for name, value in vars(options).items() if name != "log"}
    flat = True
    with StatusLine() as status, RawLog(options.log, settings) as log:
        for name in options.subjects:
            subject = Subject(name, options.threads, options.hash)
            try:
                for part in options.parts:
                    flat = run_part(subject, part, options, log, status) and flat
            finally:
                subject.close()
    return 0 if flat else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (PsearchError, chess.engine.EngineError, TimeoutError) as error:
        sys.exit(f"endurance: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
