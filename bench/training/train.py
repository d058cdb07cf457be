"""Trains nets on games of `generate.py`, on the processor, and tells what they have learnt.

    python bench/training/train.py GAMES.games ... --save FOLDER [--hidden 256] [--epochs 12] [--result-share 0.1]
        [--start NET.npz|NET.net ...] [--positions 250000,500000,1000000] [--picture FILE.png] [--json FILE]

A net is a row for each width and number of positions. Every tenth game is held out. A line for each pass has the error
there, the mean squared error of the expected score, against a target of 0.75 search and 0.25 result whatever the nets
learn from, and against the search's score and the result alone.

With several nets at --start it begins with the mean of their weights; --epochs 0 saves just that. Nets of one ancestor
have a mean that is better than each.

Into --save go HIDDEN-POSITIONS.npz, .net where the networks of the search are as wide, and HIDDEN-POSITIONS.state.npz
behind each pass: the same command goes on from there after a kill, and ends with the same weights. It takes 40 bytes of
memory a position.

Exit status: 0, 2 bad input, 130 Ctrl-C (the same command goes on behind the last whole pass).
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import numba
import numpy as np
from netdata import Parser, run_script
from netdata.reader import Followed, read
from netfit.lessons import Epoch, Plan, errors, search_errors, train, unit_like
from netfit.network import UNIT, Net, load, mean_of, random_net, unit_of, write_network

from psearch.faces.cli.arguments import whole_number
from psearch.files.safe_files import Journal
from psearch.results import PsearchError
from psearch.terminal.status import StatusLine
from psearch_core.records import NETWORK_HIDDEN

_MOST_HIDDEN = 4096


def _list_of(least: int, most: int) -> Any:
    number = whole_number(least, most)

    def numbers(text: str) -> list[int]:
        return [number(word) for word in text.split(",")]

    return numbers


def _read(words: Sequence[str] | None) -> argparse.Namespace:
    parser = Parser(__doc__)
    parser.add_argument("games", nargs="+", type=Path, metavar="GAMES.games")
    parser.add_argument(
        "--hidden",
        type=_list_of(1, _MOST_HIDDEN),
        default=[NETWORK_HIDDEN],
        metavar="H,..",
        help=f"units ({NETWORK_HIDDEN})",
    )
    parser.add_argument("--positions", type=_list_of(1, 10**10), metavar="N,..", help="to train on (all)")
    parser.add_argument(
        "--start",
        nargs="+",
        type=Path,
        default=(),
        metavar="NET",
        help="begin with this net, .npz or .net, or the mean of several (random weights)",
    )
    parser.add_argument("--epochs", type=whole_number(0, 10**4), default=12, metavar="N", help="passes (12)")
    parser.add_argument(
        "--result-share", type=float, default=0.1, metavar="W", help="of the result in the target (0.1)"
    )
    parser.add_argument(
        "--later",
        type=float,
        default=0.7,
        metavar="W",
        help="share of a followed game's later scores in its targets (0.7)",
    )
    parser.add_argument(
        "--decay", type=float, default=0.9, metavar="D", help="of a later score's weight with each ply (0.9)"
    )
    parser.add_argument(
        "--followed",
        type=whole_number(1, 100),
        default=3,
        metavar="N",
        help="weight of positions of followed games (3)",
    )
    parser.add_argument("--batch", type=whole_number(1, 10**7), default=16384, metavar="N", help="positions (16384)")
    parser.add_argument("--rate", type=float, default=1e-3, metavar="R", help="learning rate at the beginning (0.001)")
    parser.add_argument("--seed", type=whole_number(0, 10**9), default=1, metavar="N")
    parser.add_argument("--threads", type=whole_number(1, 256), default=numba.config.NUMBA_NUM_THREADS, metavar="N")
    parser.add_argument("--save", type=Path, metavar="FOLDER", help="of nets, and of what a killed run goes on from")
    parser.add_argument(
        "--picture", type=Path, metavar="FILE", help="errors over positions and epochs; needs matplotlib"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="the rows, one a line, added to the file")
    options = parser.parse_args(words)
    if not all(0 <= share <= 1 for share in (options.result_share, options.later, options.decay)):
        parser.error("--result-share, --later and --decay must be between 0 and 1")
    if not 0 < options.rate < 1:
        parser.error("--rate must be above 0 and below 1")
    if not options.epochs and not options.start:
        parser.error("--epochs 0 is for the mean of nets: name them at --start")
    return options


def _draw(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Draw errors over positions, and how each net's error fell."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, (axes, curves) = plt.subplots(1, 2, figsize=(13, 5))
    for hidden in sorted({row["hidden"] for row in rows}):
        points = sorted((row["positions"], row["error"]) for row in rows if row["hidden"] == hidden)
        axes.plot(*zip(*points, strict=True), "o-", label=f"{hidden} hidden units")
    axes.set(xscale="log", xlabel="positions with scores", ylabel="mean squared error of the expected score")
    for row in rows:
        name = f"{row['hidden']} units, {row['positions']:,} positions"
        held_out = [errors["common"] for errors in row["held_out"]]
        curves.plot(range(1, row["epochs"] + 1), held_out, "o-", label=f"{name}, held out")
        curves.plot(range(1, row["epochs"] + 1), row["training"], "x:", label=f"{name}, training")
    curves.set(xlabel="epoch", ylabel="mean squared error of the expected score")
    for part in (axes, curves):
        part.legend(fontsize="small")
    figure.tight_layout()
    figure.savefig(path, dpi=110)


class _Progress:
    """A line on a terminal for what is going on, and a printed one for each pass."""

    def __init__(self, screen: StatusLine) -> None:
        self._screen = screen
        self._since = time.monotonic()
        self._before = 0
        self._done = 0
        self._total = 0

    def _speed(self, total: int = 0) -> str:
        pace = (self._done - self._before) / max(time.monotonic() - self._since, 1e-3)
        left = f", {timedelta(seconds=round((total - self._done) / pace))} left" if pace and total else ""
        return f"{pace:,.0f} positions/s, {memory_mb():,} MiB{left}"

    def read(self, positions: int) -> None:
        self._done = positions
        self._screen(f"{positions:,} positions read, {self._speed()}")

    def look(self, done: int, total: int) -> None:
        if not self._done:  # behind a kill it does not begin at 0
            self._before, self._since = done, time.monotonic()
        self._done = done
        self._total = total
        self._screen(f"{done:,} of {total:,} presentations, {self._speed(total)}")

    def epoch(self, plan: Plan, epoch: Epoch) -> None:
        self._screen.make_room()
        text = f"pass {epoch.number} of {plan.epochs}: training {epoch.training_error:.6f}, held out {epoch.errors}"
        print(f"{text}, {self._speed(self._total)}", flush=True)


def memory_mb() -> int:
    """Return the most memory that this process has had, MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def _unit(options: argparse.Namespace, net: Net, starts: Sequence[Net], samples: np.ndarray) -> int:
    """Return the unit with which a net's values are as large as those of the first network (.net) at --start."""
    for path, start in zip(options.start, starts, strict=True):
        if path.suffix == ".net":
            return unit_like(net, start, unit_of(path), samples, options.threads)
    return UNIT


def _train(options: argparse.Namespace, log: Journal | None) -> int:
    since = time.monotonic()
    with StatusLine(only_terminal=True) as screen:
        followed = Followed(options.later, options.followed, options.decay)
        positions = read(options.games, followed=followed, on_block=_Progress(screen).read)
    training, test = positions.training, positions.test
    counts = options.positions or [len(training)]
    if not len(training) or max(counts) > len(training):
        raise PsearchError(f"there are {len(training):,} positions to train on")
    seconds = time.monotonic() - since
    print(
        f"{positions.games:,} games, {len(training):,} positions to train on, {len(test):,} held out; read in "
        f"{seconds:.0f} s, {(len(training) + len(test)) / seconds:,.0f} positions/s, {memory_mb():,} MiB\n"
        f"held-out error of the search's own scores: {search_errors(test)}",
        flush=True,
    )
    if options.save is not None:
        options.save.mkdir(parents=True, exist_ok=True)
    plan = Plan(options.epochs, options.batch, options.rate, result_share=options.result_share, seed=options.seed)
    rows = []
    for hidden in options.hidden:
        starts = [load(path) for path in options.start]
        for path, one in zip(options.start, starts, strict=True):
            if one.hidden != hidden:
                raise PsearchError(f"{path} has {one.hidden} hidden units, not {hidden}")
        start = mean_of(starts or [random_net(hidden, plan.seed)])
        for count in counts:
            since = time.monotonic()
            place = None if options.save is None else options.save / f"{hidden}-{count}"
            state = None if place is None else place.with_name(f"{place.name}.state.npz")
            for given in options.start:
                if place is not None and given.resolve().with_suffix("") == place.resolve():
                    raise PsearchError(f"{given} would be replaced: --save needs another folder")
            with StatusLine(only_terminal=True) as screen:
                shown = _Progress(screen)
                net, epochs = train(
                    start, training, test, plan, options.threads, count, state, partial(shown.epoch, plan), shown.look
                )
            reached = epochs[-1].errors if epochs else errors(net, test, options.threads)
            row = {
                "hidden": hidden,
                "positions": count,
                "error": reached.common,
                "training": [epoch.training_error for epoch in epochs],
                "held_out": [epoch.errors._asdict() for epoch in epochs],
                "files": [str(path.name) for path in options.games],
                "start": [path.name for path in options.start],
                "seconds": round(time.monotonic() - since, 1),
                **plan._asdict(),
                "later": options.later,
                "decay": options.decay,
                "followed": options.followed,
                "threads": options.threads,
            }
            rows.append(row)
            print(f"{hidden:>5} units, {count:>12,} positions: {reached} ({row['seconds']:.0f} s)", flush=True)
            if log is not None:
                log.append(row)
            if place is not None:
                notes = {"made_by": json.dumps(row), "numpy": np.__version__, "numba": numba.__version__}
                net.save(place.with_name(f"{place.name}.npz"), **notes)
                if hidden == NETWORK_HIDDEN:
                    unit = _unit(options, net, starts, test)
                    write_network(net, place.with_name(f"{place.name}.net"), notes, unit)
    if options.picture is not None:
        _draw(options.picture, rows)
    return 0


def run(words: Sequence[str] | None = None) -> int:
    """Train; returns the exit status."""
    options = _read(words)
    if options.json is None:
        return _train(options, None)
    with Journal.at_end(options.json, b'{"hidden": ') as log:
        return _train(options, log)


if __name__ == "__main__":
    sys.exit(run_script("train"))
