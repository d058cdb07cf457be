"""Games between two settings of selective search, both in one process: some thousands in half an hour on two cores.

    python bench/match/quick.py --first modern --second modern,mate_in_one=0 --nodes 5000 --book a.epd b.epd \
        [--games 2000] [--jobs 2] [--sprt=-3,0] [--seed 1]

Every opening is played twice with colours changed, by one worker a side, with a table of its own, and a fixed number of
nodes for each move: the games are the same whatever else the machine does, so an opening is used once only. What
techniques cost in time is not seen: for that, and for everything about clocks, there is `match.py`. Games end by the
rules, when both sides have thought for four moves that one is six pawns ahead, or for eight, from move 40 on, that
neither is by more than 10 centipawns.

Prints a line each hundred pairs and the result; --sprt ELO0,ELO1 (logistic) ends the match when it is decided. Exit
status: 0, 2 bad input, 130 Ctrl-C (what is printed is what was played).
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path

import chess
from matchplay.elo import Sprt
from matchplay.errors import MatchError, Parser
from matchplay.in_process import play
from matchplay.openings import Opening, read_books
from matchplay.sharing import add_where, share
from matchplay.tally import pairs_text

from psearch.arena.arena import Arena
from psearch.arena.setup import write_search
from psearch.cli.numbers import whole_number
from psearch.core.board.bridge import to_chess_move
from psearch.core.pruning.modes import Pruning
from psearch.options import SearchOptions, pruning_named
from psearch.results import Limits, PsearchError
from psearch.scheduler.entries import load_kernels, work

EXIT_BAD_INPUT = 2
EXIT_INTERRUPTED = 130
_HASH_MB = 4
_STEPS = 1 << 20
_PAIRS_A_LINE = 100


class Player:
    """One side: a setting, and what it remembers of its game."""

    def __init__(self, pruning: Pruning, nodes: int) -> None:
        self._arena = Arena(workers=1, hash_mb=_HASH_MB)
        self._options = SearchOptions(policy="serial", pruning=pruning)
        self._limits = Limits(nodes=nodes)

    def play_with(self, pruning: Pruning) -> None:
        """Take another setting, from the next move on."""
        self._options = SearchOptions(policy="serial", pruning=pruning)

    def new_game(self) -> None:
        self._arena.clear_table()
        self._arena.clear_learning()

    def move(self, board: chess.Board) -> tuple[chess.Move, int]:
        """The move, and its score in centipawns; a mate is many."""
        write_search(self._arena, board, self._limits, self._options)
        while not work(self._arena.context, 0, _STEPS):
            pass
        header = self._arena.header[0]
        return to_chess_move(int(header["best_move"]), board), int(header["score"])


class Table:
    """Where a process plays its pairs."""

    def __init__(self, first: Pruning, second: Pruning, nodes: int) -> None:
        load_kernels()
        self._players = Player(first, nodes), Player(second, nodes)

    def play_with(self, first: Pruning, second: Pruning) -> None:
        """Give both sides other settings, from the next game on."""
        for player, pruning in zip(self._players, (first, second), strict=True):
            player.play_with(pruning)

    def pair(self, opening: Opening) -> int:
        """Half points of the first player, 0 to 4."""
        return sum(play(self._players, opening, white).half_points for white in (0, 1))


def _make(first: Pruning, second: Pruning, nodes: int) -> Callable[[Opening], int]:
    return Table(first, second, nodes).pair


def _sprt(text: str) -> Sprt:
    try:
        low, high = (float(word) for word in text.split(","))
    except ValueError:
        low, high = 0.0, 0.0
    if not -200 <= low < high <= 200:
        raise argparse.ArgumentTypeError(f"must be two numbers of Elo, the lower one first, not {text[:40]!a}")
    return Sprt(low, high, model="logistic")


def _read(words: Sequence[str] | None) -> tuple[argparse.Namespace, list[Opening]]:
    parser = Parser(description=__doc__)
    parser.add_argument("--first", default="modern", metavar="MODE[,NAME=VALUE...]")
    parser.add_argument("--second", required=True, metavar="MODE[,NAME=VALUE...]")
    parser.add_argument("--nodes", type=whole_number(100, 10**9), default=5000, metavar="N", help="a move (5000)")
    parser.add_argument("--games", type=whole_number(2, 10**7), default=2000, metavar="N", help="at most (2000)")
    parser.add_argument("--jobs", type=whole_number(1, 256), default=2, metavar="N", help="processes (2)")
    add_where(parser)
    parser.add_argument("--book", nargs="+", type=Path, required=True, metavar="FILE", help="EPD, FEN or PGN")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the order of the openings (1)")
    parser.add_argument("--sprt", type=_sprt, metavar="ELO0,ELO1")
    options = parser.parse_args(words)
    openings = read_books(options.book)
    random.Random(options.seed).shuffle(openings)
    wanted = options.games // 2
    if len(openings) < wanted:
        raise MatchError(f"{2 * wanted} games need {wanted} different openings, and there are {len(openings)}")
    return options, openings[:wanted]


def _line(counts: Sequence[int], sprt: Sprt | None) -> str:
    text = pairs_text(counts)
    return text if sprt is None or not any(counts) else f"{text}, LLR {sprt.llr(counts):+.2f} of {sprt.bounds[1]:.2f}"


def run(words: Sequence[str] | None = None) -> int:
    """Play, and print."""
    options, openings = _read(words)
    first, second = (pruning_named(text) for text in (options.first, options.second))
    load_kernels()  # compiled once, not by every process
    sprt: Sprt | None = options.sprt
    counts = [0] * 5
    answers = share(options, partial(_make, first, second, options.nodes), openings)
    status = 0
    try:
        for _, half_points in answers:
            counts[half_points] += 1
            if sum(counts) % _PAIRS_A_LINE == 0:
                print(_line(counts, sprt), flush=True)
                if sprt is not None and sprt.decision(sprt.llr(counts)) is not None:
                    break
    except KeyboardInterrupt:
        status = EXIT_INTERRUPTED
    finally:
        answers.close()
    print(f"{options.first} against {options.second}, {options.nodes} nodes a move: {_line(counts, sprt)}")
    return status


def main() -> int:
    """Bad input is one line."""
    try:
        return run()
    except (MatchError, PsearchError) as error:
        print(f"quick.py: {error}", file=sys.stderr)
        return EXIT_BAD_INPUT


if __name__ == "__main__":
    # under its own name, by which other machines know its functions
    sys.exit(import_module("quick").main())
