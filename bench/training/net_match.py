"""Games at a fixed number of nodes between searches that evaluate by nets of `train.py`, or by hand.

    python bench/training/net_match.py --first NET.npz --second NET.npz|hand --book a.epd b.epd [--nodes 5000]
        [--games 400] [--jobs 2] [--seed 1]

As `bench/match/quick.py`: every opening is played twice with colours changed, by one worker a side. A net is evaluated
from nothing at each position, so time says nothing, and with the margins that were tuned for the evaluation by hand.

Exit status: 0, 2 bad input, 130 Ctrl-C (what is printed is what was played).
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path

import chess

sys.path.append(
    str(Path(__file__).parents[1] / "match")
)  # it has the openings, the rules and the arithmetic of matches

from matchplay.errors import MatchError, Parser
from matchplay.in_process import play
from matchplay.openings import Opening, read_books
from matchplay.tally import pairs_text
from netfit.network import load
from netfit.search_record import SEARCH_BY_NET, search_record
from netfit.search_record import begin_search as begin_by_net
from netfit.search_record import work as work_by_net

from psearch.arena.arena import Arena
from psearch.arena.setup import write_search
from psearch.cli.numbers import whole_number
from psearch.core.board.bridge import to_chess_move
from psearch.options import SearchOptions
from psearch.results import Limits, PsearchError
from psearch.scheduler.entries import load_kernels, work
from psearch.studies.job_pool import share_out

EXIT_BAD_INPUT, EXIT_INTERRUPTED = 2, 130
_HASH_MB = 8
_STEPS = 1 << 20
_PAIRS_A_LINE = 50


class Player:
    """One side: its evaluation, and what it remembers of its game."""

    def __init__(self, net: str, nodes: int) -> None:
        self._arena = Arena(workers=1, hash_mb=_HASH_MB)
        self._limits = Limits(nodes=nodes)
        self._options = SearchOptions(policy="serial")
        self._net = None if net == "hand" else search_record(load(Path(net)))
        if self._net is not None:
            self._arena.tables[0]["rest_bound"] = self._net.ctypes.data

    def new_game(self) -> None:
        """Forget."""
        self._arena.forget()

    def move(self, board: chess.Board) -> tuple[chess.Move, int]:
        """Return the move, and its score in centipawns."""
        arena = self._arena
        write_search(arena, board, self._limits, self._options)
        if self._net is not None:
            begin_by_net(arena.context)
        while not (work if self._net is None else work_by_net)(arena.context, 0, _STEPS):
            pass
        header = arena.header[0]
        return to_chess_move(int(header["best_move"]), board), int(header["score"])


class Table:
    """Where a process plays its pairs."""

    def __init__(self, first: str, second: str, nodes: int) -> None:
        load_kernels(SEARCH_BY_NET)
        self._players = Player(first, nodes), Player(second, nodes)

    def pair(self, opening: Opening) -> int:
        """Play an opening twice; returns the half points of the first player, 0 to 4."""
        return sum(play(self._players, opening, white).half_points for white in (0, 1))


def _make(first: str, second: str, nodes: int) -> Callable[[Opening], int]:
    return Table(first, second, nodes).pair


def run(words: Sequence[str] | None = None) -> int:
    """Play, and print."""
    parser = Parser(description=__doc__)
    parser.add_argument("--first", required=True, metavar="NET")
    parser.add_argument("--second", default="hand", metavar="NET")
    parser.add_argument("--nodes", type=whole_number(100, 10**9), default=5000, metavar="N", help="a move (5000)")
    parser.add_argument("--games", type=whole_number(2, 10**7), default=400, metavar="N", help="(400)")
    parser.add_argument("--jobs", type=whole_number(1, 256), default=2, metavar="N", help="processes (2)")
    parser.add_argument("--book", nargs="+", type=Path, required=True, metavar="FILE", help="EPD, FEN or PGN")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the order of the openings (1)")
    options = parser.parse_args(words)
    for net in (options.first, options.second):
        if net != "hand":
            search_record(load(Path(net)))
    openings = read_books(options.book)
    random.Random(options.seed).shuffle(openings)
    wanted = options.games // 2
    if len(openings) < wanted:
        raise MatchError(f"{2 * wanted} games need {wanted} different openings, and there are {len(openings)}")
    load_kernels(SEARCH_BY_NET)
    counts = [0] * 5
    answers = share_out(partial(_make, options.first, options.second, options.nodes), openings[:wanted], options.jobs)
    status = 0
    try:
        for _, half_points in answers:
            counts[half_points] += 1
            if sum(counts) % _PAIRS_A_LINE == 0:
                print(pairs_text(counts), flush=True)
    except KeyboardInterrupt:
        status = EXIT_INTERRUPTED
    finally:
        answers.close()
    print(f"{options.first} against {options.second}, {options.nodes} nodes a move: {pairs_text(counts)}")
    return status


def main() -> int:
    """Bad input is one line."""
    try:
        return run()
    except (MatchError, PsearchError, ValueError, OSError) as error:
        print(f"net_match.py: {error}", file=sys.stderr)
        return EXIT_BAD_INPUT


if __name__ == "__main__":
    # under its own name, by which other processes know its functions
    sys.exit(import_module("net_match").main())
