"""Games at a fixed number of nodes between searches that evaluate by nets, or by hand.

    python bench/training/net_match.py --first NET --second NET|hand --book a.epd b.epd [--nodes 5000] [--games 400]
        [--jobs 2] [--seed 1]

NET is a file of `train.py`, .npz or .net, as wide as the networks of the search. As `bench/match/quick.py`: every
opening is played twice with colours changed, by one worker a side, with the margins of the default search.

Exit status: 0, 2 bad input, 130 Ctrl-C (what is printed is what was played).
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

sys.path.append(
    str(Path(__file__).parents[1] / "match")
)  # it has the openings, the rules and the arithmetic of matches

from matchplay.errors import MatchError, Parser, run_script
from matchplay.in_process import Player, add_arguments, openings_of, play_all, play_pair
from matchplay.openings import Opening
from netfit.inference import as_network

from psearch.options import SearchOptions
from psearch.processes.tasks.task_sharing import share_out
from psearch.scheduler.scheduler_entries import load_kernels

_BY_HAND = "hand"
_HASH_MB = 8
_PAIRS_A_LINE = 50


def _make(sides: Sequence[SearchOptions], nodes: int) -> Callable[[Opening], int]:
    load_kernels()
    return partial(play_pair, [Player(options, nodes, _HASH_MB) for options in sides])


def _side(net: str, folder: Path) -> SearchOptions:
    if net == _BY_HAND:
        return SearchOptions(policy="serial", evaluation="classic")
    try:
        return SearchOptions(policy="serial", net=str(as_network(Path(net), folder)))
    except (OSError, ValueError) as error:
        raise MatchError(str(error)) from None


def run(words: Sequence[str] | None = None) -> int:
    """Play, and print."""
    parser = Parser(description=__doc__)
    parser.add_argument("--first", required=True, metavar="NET")
    parser.add_argument("--second", default=_BY_HAND, metavar="NET")
    add_arguments(parser, games=400)
    options = parser.parse_args(words)
    openings = openings_of(options)
    with tempfile.TemporaryDirectory() as place:
        folders = [Path(place, side) for side in ("first", "second")]  # files of one name are two networks
        for folder in folders:
            folder.mkdir()
        sides = [_side(net, folder) for net, folder in zip((options.first, options.second), folders, strict=True)]
        load_kernels()
        answers = share_out(partial(_make, sides, options.nodes), openings, options.jobs)
        return play_all(options, answers, _PAIRS_A_LINE)


if __name__ == "__main__":
    sys.exit(run_script("net_match"))
