"""Games at a fixed number of nodes between searches that evaluate by nets of `train.py`, or by hand.

    python bench/training/net_match.py --first NET.npz --second NET.npz|hand --book a.epd b.epd [--nodes 5000]
        [--games 400] [--jobs 2] [--seed 1]

As `bench/match/quick.py`: every opening is played twice with colours changed, by one worker a side. A net is evaluated
from nothing at each position, so time says nothing, and with the margins that were tuned for the evaluation by hand.

Exit status: 0, 2 bad input, 130 Ctrl-C (what is printed is what was played).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

sys.path.append(
    str(Path(__file__).parents[1] / "match")
)  # it has the openings, the rules and the arithmetic of matches

from matchplay.errors import MatchError, Parser, run_script
from matchplay.in_process import Player, add_arguments, openings_of, play_all, play_pair
from matchplay.openings import Opening
from netfit.network import load
from netfit.search_record import SEARCH_BY_NET, search_record
from netfit.search_record import begin_search as begin_by_net
from netfit.search_record import work as work_by_net

from psearch.options import SearchOptions
from psearch.processes.tasks.task_sharing import share_out
from psearch.scheduler.scheduler_entries import load_kernels

_OPTIONS = SearchOptions(policy="serial")
_HASH_MB = 8
_STEPS = 1 << 20
_PAIRS_A_LINE = 50


class NetPlayer(Player):
    """A side whose positions a net evaluates."""

    def __init__(self, net: str, nodes: int) -> None:
        super().__init__(_OPTIONS, nodes, _HASH_MB)
        self._net = search_record(load(Path(net)))
        self._arena.tables[0]["rest_bound"] = self._net.ctypes.data

    def _search(self, context: int) -> None:
        begin_by_net(context)
        while not work_by_net(context, 0, _STEPS):
            pass


def _make(first: str, second: str, nodes: int) -> Callable[[Opening], int]:
    load_kernels(SEARCH_BY_NET)
    players = [Player(_OPTIONS, nodes, _HASH_MB) if net == "hand" else NetPlayer(net, nodes) for net in (first, second)]
    return partial(play_pair, players)


def run(words: Sequence[str] | None = None) -> int:
    """Play, and print."""
    parser = Parser(description=__doc__)
    parser.add_argument("--first", required=True, metavar="NET")
    parser.add_argument("--second", default="hand", metavar="NET")
    add_arguments(parser, games=400)
    options = parser.parse_args(words)
    try:
        for net in {options.first, options.second} - {"hand"}:
            search_record(load(Path(net)))
    except (OSError, ValueError) as error:
        raise MatchError(str(error)) from None
    openings = openings_of(options)
    load_kernels(SEARCH_BY_NET)
    answers = share_out(partial(_make, options.first, options.second, options.nodes), openings, options.jobs)
    return play_all(options, answers, _PAIRS_A_LINE)


if __name__ == "__main__":
    sys.exit(run_script("net_match"))
