"""Real workers that lose the processor between any two steps which others can see, at random: is every answer right?

    python bench/study/torture.py [--minutes M] [--seed S] [--workers N] [--log LOG.jsonl]

Kernels are built with `PSEARCH_YIELDS=1`. Searches without a table, of which the value is known: one worker finds it
first. Policy, depth of splitting and position are drawn; every fourth search is stopped at some moment, so its move is
only looked at for being legal. After each, when all workers are idle, every invariant of the arena is checked.

Prints a line when it is through, and writes one a minute to the log. Ends with status 1 at the first thing that is
wrong, having said what, with the seed of that search: `--seed` repeats the position, not the order of steps.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    os.environ["PSEARCH_YIELDS"] = "1"  # before anything is imported that reads it

import chess

from psearch.arena.arena import Arena
from psearch.arena.setup import write_search
from psearch.arena.validate import describe, leftovers, violations
from psearch.defaults import PREDICTING_POLICIES
from psearch.options import SearchOptions
from psearch.processes.request import SearchRequest
from psearch.processes.supervisor import Supervisor
from psearch.processes.worker_main import work_alone
from psearch.results import Limits

POLICIES = ("ybw", *PREDICTING_POLICIES)
_SERIAL_NODES = 20_000
"""The deepest search that one worker needs no more for is done by all."""
_DEEPEST = 6
_PATIENCE_S = 60.0
"""Eight workers on two busy cores are slow: not one of them may be taken for dead."""
_COUNTED = ("opens", "splits", "joins", "failed_joins", "parks", "adopts", "aborts")


class WrongError(Exception):
    """Something that must not be."""


def position(dice: random.Random) -> chess.Board:
    """Some plies into a game of random moves."""
    while True:
        board = chess.Board()
        for _ in range(dice.randrange(4, 60)):
            moves = list(board.legal_moves)
            if not moves:
                break
            board.push(dice.choice(moves))
        if board.legal_moves.count() > 1 and not board.is_game_over(claim_draw=True):
            return board


def serial_search(arena: Arena, board: chess.Board) -> tuple[int, int]:
    """The deepest iteration of one worker that is cheap enough, and its value."""
    for depth in range(2, _DEEPEST + 1):
        write_search(arena, board, Limits(depth=depth), SearchOptions.plain("serial"))
        work_alone(arena)
        value = int(arena.header[0]["score"])
        if int(arena.worker[0]["nodes"]) > _SERIAL_NODES // 4:
            break
    return depth, value


class Torture:
    """Searches one after the other with the same workers, and what was counted."""

    def __init__(self, workers: int) -> None:
        self.serial = Arena(1, 1)
        self.supervisor = Supervisor(workers, 1)
        self.counts: Counter[str] = Counter()

    def search(self, seed: int) -> None:
        """One search; raises WrongError."""
        dice = random.Random(seed)
        board = position(dice)
        depth, value = serial_search(self.serial, board)
        limits = Limits(depth=depth)
        if stopped := seed % 4 == 3:
            limits = Limits(depth=depth + 2, movetime_ms=dice.randrange(1, 100))
        options = SearchOptions.plain(dice.choice(POLICIES), split_depth=dice.choice((1, 1, 2)))
        result = self.supervisor.search(SearchRequest(board, limits, options, patience_s=_PATIENCE_S))
        self.supervisor.settle()
        arena = self.supervisor.arena
        problems = [*result.notes, *violations(arena), *leftovers(arena)]
        if result.bestmove not in board.legal_moves:
            problems.append(f"the move {result.bestmove} is not legal")
        if not stopped and int(arena.header[0]["score"]) != value:
            problems.append(f"the value is {arena.header[0]['score']}, one worker finds {value}")
        if problems:
            what = "; ".join(problems)
            raise WrongError(f"seed {seed}, {board.fen()}, depth {depth}, {options}: {what}\n{describe(arena)}")
        self._count(stopped)

    def _count(self, stopped: bool) -> None:
        arena = self.supervisor.arena
        self.counts.update(searches=1, stopped=int(stopped), nodes=int(arena.worker["nodes"].sum()))
        self.counts.update({name: int(arena.worker["counters"][name].sum()) for name in _COUNTED})

    def close(self) -> None:
        self.supervisor.close()
        self.serial.close()


def run(torture: Torture, minutes: float, seed: int, note: Any) -> None:
    """Search for so many minutes; note: called once a minute."""
    start = noted = time.monotonic()
    while time.monotonic() - start < 60 * minutes:
        torture.search(seed)
        seed += 1
        if time.monotonic() - noted > 60:
            noted = time.monotonic()
            note(noted - start, "runs")
    note(time.monotonic() - start, "nothing is wrong")


def main() -> int:
    """Run, and say what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--log", type=Path)
    options = parser.parse_args()
    torture = Torture(options.workers)

    def note(seconds: float, state: str) -> None:
        row = {"seconds": round(seconds), "workers": options.workers, "seed": options.seed, "state": state}
        if options.log is not None:
            with options.log.open("a") as log:
                print(json.dumps({**row, **torture.counts}), file=log)

    try:
        run(torture, options.minutes, options.seed, note)
    except WrongError as wrong:
        note(0, f"wrong: {wrong}")
        print(f"torture: {wrong}", file=sys.stderr)
        return 1
    finally:
        torture.close()
    print("torture: nothing is wrong: " + ", ".join(f"{count} {name}" for name, count in torture.counts.items()))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
