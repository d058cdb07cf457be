"""Real workers that lose the processor between any two steps which others can see, at random: is every answer right?

    python bench/study/torture.py [--minutes M] [--seed S] [--workers N] [--game FILE] [--with FILE] [--kill MS]
                                  [--log LOG.jsonl]

Kernels are built with `PSEARCH_YIELDS=1`, unless the environment says `PSEARCH_YIELDS=`. Searches of which the value is
known: one worker finds it first. Policy, driver, depth of splitting and position are drawn; every fourth search is
stopped at some moment, so its move is only looked at for being legal. After each, when all workers are idle, every
invariant of the arena is checked.

Chess is searched without a table and leaves nothing out; a game of a user's (`--game`) is searched with one. `--with`
adds a user's policy, or rules that keep chess so: an evaluation, or what concerns reduced moves only. With `--kill` a
worker, drawn at random, is killed every so many milliseconds: values must be right all the same, but a search may be
given up with one line, or be cut short after 20 s: where no iteration ends between two kills, none ever does.

Prints a line when it is through, and writes one a minute to the log. Ends with status 1 at the first thing that is
wrong, having said what, with the seed of that search: `--seed` repeats the position, not the order of steps.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

if __name__ == "__main__":
    os.environ.setdefault("PSEARCH_YIELDS", "1")  # before anything is imported that reads it

import chess
from chaos import Tormentor
from processes import family

from psearch.arena import setup
from psearch.arena.arena import Arena
from psearch.arena.setup import board_text, write_search
from psearch.arena.validate import describe, leftovers, violations
from psearch.defaults import PREDICTING_POLICIES
from psearch.files.safe_files import Journal
from psearch.games import Game, GamePosition
from psearch.games.searching import options_for
from psearch.options import SearchOptions
from psearch.processes.request import SearchRequest
from psearch.processes.search_reports import centipawns
from psearch.processes.supervisor import Supervisor
from psearch.processes.worker_main import work_alone
from psearch.results import Limits, PsearchError, Result, WorkerDied
from psearch.scheduler.scheduler_entries import SEARCH, load_kernels

POLICIES = ("ybw", *PREDICTING_POLICIES)
_SERIAL_NODES = 20_000
"""The deepest search that one worker needs no more for is done by all."""
_DEEPEST = 6
_PATIENCE_S = 60.0
"""Eight workers on two busy cores are slow: not one of them may be taken for dead."""
_KILLED_MS = 20_000
"""Milliseconds that a search may take whose workers are killed."""
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


def game_position(game: Game, dice: random.Random) -> GamePosition:
    """Return a position some plies into a game of random moves."""
    position = game.start()
    for _ in range(dice.randrange(30)):
        after = position.after(dice.choice(position.moves()))
        position = game.start() if after.is_over else after
    return position


def options_of(game: Game | None, policy: str, with_: str = "", split_depth: int = 1) -> SearchOptions:
    """Options with which any number of workers must find the value of one."""
    if game is None:
        return replace(SearchOptions.plain(policy, split_depth), with_=with_)
    return replace(options_for(game, with_ or policy), split_depth=split_depth)


def serial_search(arena: Arena, board: chess.Board | GamePosition, options: SearchOptions) -> tuple[int, int]:
    """The deepest iteration of one worker that is cheap enough, and its value."""
    for depth in range(2, _DEEPEST + 1):
        write_search(arena, board, Limits(depth=depth), options)
        work_alone(arena)
        value = int(arena.header[0]["score"])
        if int(arena.worker[0]["nodes"]) > _SERIAL_NODES // 4:
            break
    return depth, value


class Torture:
    """Searches one after the other with the same workers, and what was counted."""

    def __init__(self, workers: int, game: Game | None = None, with_: str = "", kill_ms: float = 0.0) -> None:
        self.game = game
        self.with_ = with_
        self.alone = options_of(game, "serial", with_)
        kernels = self.alone.kernels
        load_kernels(kernels.group(SEARCH))
        self.serial = Arena(1, 1, kernels=kernels)
        self.counts: Counter[str] = Counter()
        self.killer: Tormentor | None = None
        if kill_ms:  # before the workers: beside a thread a fork server starts them
            if game is not None:
                game.start()  # by a process for its rules, which is no worker
            self.killer = Tormentor(["KILL"], kill_ms / 1000, 0.0, seed=1)
            self.killer.engine, self.killer.spared = os.getpid(), set(family(os.getpid()))
            self.killer.start()
        self.supervisor = Supervisor(workers, 1, kernels=kernels)

    def search(self, seed: int) -> None:
        dice = random.Random(seed)
        board = position(dice) if self.game is None else game_position(self.game, dice)
        depth, value = serial_search(self.serial, board, self.alone)
        limits = Limits(depth=depth)
        if stopped := seed % 4 == 3:
            limits = Limits(depth=depth + 2, movetime_ms=dice.randrange(1, 100))
        elif self.killer is not None:
            limits = Limits(depth=depth, movetime_ms=_KILLED_MS)
        options = options_of(self.game, dice.choice(POLICIES), self.with_, dice.choice((1, 1, 2)))
        if self.game is None:
            options = replace(options, driver=dice.choice(("pvs", "null")))
        try:
            result = self._search(SearchRequest(board, limits, options, patience_s=_PATIENCE_S))
        except WorkerDied as error:
            if self.killer is None or "\n" in str(error):
                raise
            self.counts.update(searches=1, given_up=1)
            return
        arena = self.supervisor.arena
        problems = [] if self.killer else [*result.notes]
        if not self.supervisor.pool.is_broken:
            problems += [*violations(arena), *leftovers(arena)]
        legal = board.legal_moves if isinstance(board, chess.Board) else board.root_moves()
        if result.bestmove not in cast(Any, legal):
            problems.append(f"the move {result.bestmove} is not legal")
        score, is_whole = centipawns(result.info.score), result.info.depth == depth or not result.notes
        if not stopped and is_whole and score != value:
            problems.append(f"the value is {score}, one worker finds {value}")
        if problems:
            what = "; ".join(problems)
            raise WrongError(f"seed {seed}, {board_text(board)}, depth {depth}, {options}: {what}\n{describe(arena)}")
        self.counts.update(searches=1, stopped=int(stopped), nodes=int(arena.worker["nodes"].sum()))
        self.counts.update({name: int(arena.worker["counters"][name].sum()) for name in _COUNTED})

    def _search(self, request: SearchRequest) -> Result:
        """Search with workers that are killed, if any are; in the end all are idle."""
        if self.killer is not None:
            self.killer.is_let_loose.set()
        try:
            return self.supervisor.search(request)
        finally:
            if self.killer is not None:
                self.killer.is_let_loose.clear()
                self.counts["kills"] = len(self.killer.sent)
            self.supervisor.settle()

    def close(self) -> None:
        if self.killer is not None:
            self.killer.__exit__()
        self.supervisor.close()
        self.serial.close()


def main() -> int:
    """Run, and say what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--game", metavar="FILE")
    parser.add_argument("--with", metavar="FILE", dest="with_", default="")
    parser.add_argument("--kill", type=float, default=0.0, metavar="MS")
    parser.add_argument("--log", type=Path)
    options = parser.parse_args()
    try:
        game = None if options.game is None else Game(options.game)
        log = None if options.log is None else Journal.at_end(options.log, b'{"seconds": ')
    except (OSError, ValueError, PsearchError) as error:
        print(f"torture: {error}", file=sys.stderr)
        return 2
    setup.PROVED_DEPTH = 1  # these trees are low
    torture = Torture(options.workers, game, options.with_, options.kill)

    settings = {name: value for name, value in vars(options).items() if value and name not in ("log", "minutes")}
    start = noted = time.monotonic()

    def note(state: str) -> None:
        if log is not None:
            log.append({"seconds": round(time.monotonic() - start), **settings, "state": state, **torture.counts})

    try:
        seed = options.seed
        while time.monotonic() - start < 60 * options.minutes:
            torture.search(seed)
            seed += 1
            if time.monotonic() - noted > 60:
                noted = time.monotonic()
                note("runs")
        note("nothing is wrong")
    except WrongError as wrong:
        note(f"wrong: {wrong}")
        print(f"torture: {wrong}", file=sys.stderr)
        return 1
    finally:
        torture.close()
    print("torture: nothing is wrong: " + ", ".join(f"{count} {name}" for name, count in torture.counts.items()))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
