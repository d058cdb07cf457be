"""Games between two settings of the search, both in one process: some thousands in half an hour on two cores.

    python bench/match/quick.py --first modern --second modern,mate_in_one=0 --nodes 5000 --book a.epd b.epd \
        [--first-evaluation FILE.net] [--second-evaluation classic] [--games 2000] [--jobs 2] [--sprt=-3,0] [--seed 1]

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
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from matchplay.elo import Sprt
from matchplay.in_process import Player, add_arguments, openings_of, play_all, play_pair
from matchplay.openings import Opening
from matchplay.scripts import Parser, run_script, share

from psearch.defaults import DEFAULT_EVALUATION, EVALUATIONS
from psearch.options import SearchOptions, pruning_named
from psearch.scheduler.scheduler_entries import load_kernels
from psearch_core.records.pruning_record import Pruning

_PAIRS_A_LINE = 100


class Table:
    """The memory with which a process plays its pairs."""

    def __init__(self, first: SearchOptions, second: SearchOptions, nodes: int) -> None:
        load_kernels()
        self._players = [Player(options, nodes) for options in (first, second)]

    def play_with(self, first: Pruning, second: Pruning) -> None:
        """Give both sides other settings, from the next game on."""
        for player, pruning in zip(self._players, (first, second), strict=True):
            player.options = replace(player.options, pruning=pruning)

    def pair(self, opening: Opening) -> int:
        """Half points of the first player, 0 to 4."""
        return play_pair(self._players, opening)


def serial_search(pruning: Pruning, evaluation: str = DEFAULT_EVALUATION) -> SearchOptions:
    """Return the options of one side, whose one worker evaluates by the file of a network or by a named evaluation."""
    named, network = (evaluation, "") if evaluation in EVALUATIONS else (DEFAULT_EVALUATION, evaluation)
    return SearchOptions(policy="serial", pruning=pruning, evaluation=named, net=network)


def _make(first: SearchOptions, second: SearchOptions, nodes: int) -> Callable[[Opening], int]:
    return Table(first, second, nodes).pair


def _sprt(text: str) -> Sprt:
    try:
        low, high = (float(word) for word in text.split(","))
    except ValueError:
        low, high = 0.0, 0.0
    if not -200 <= low < high <= 200:
        raise argparse.ArgumentTypeError(f"must be two numbers of Elo, the lower one first, not {text[:40]!a}")
    return Sprt(low, high, model="logistic")


def run(words: Sequence[str] | None = None) -> int:
    parser = Parser(description=__doc__)
    parser.add_argument("--first", default="modern", metavar="MODE[,NAME=VALUE...]")
    parser.add_argument("--second", required=True, metavar="MODE[,NAME=VALUE...]")
    for side in ("first", "second"):
        parser.add_argument(f"--{side}-evaluation", default=DEFAULT_EVALUATION, metavar="NAME|FILE.net")
    add_arguments(parser, games=2000)
    parser.add_where()
    parser.add_argument("--sprt", type=_sprt, metavar="ELO0,ELO1")
    options = parser.parse_args(words)
    openings = openings_of(options)
    first = serial_search(pruning_named(options.first), options.first_evaluation)
    second = serial_search(pruning_named(options.second), options.second_evaluation)
    load_kernels()  # compiled once, not by every process
    answers = share(partial(_make, first, second, options.nodes), openings, options.jobs, options.on)
    return play_all(options, answers, _PAIRS_A_LINE, options.sprt)


if __name__ == "__main__":
    sys.exit(run_script("quick"))
