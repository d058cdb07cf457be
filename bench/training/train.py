"""Trains nets on games of `generate.py`, on the processor, and tells what they have learnt.

    python bench/training/train.py GAMES.games ... --hidden 16,64,256 [--positions 250000,500000,1000000,2000000]
        [--first-stage 10000000] [--epochs 12] [--save FOLDER] [--picture FILE.png]
        [--json FILE]

Positions with scores are those of the games. A net is a row
for each width and number of positions. Its error is the mean squared error of the expected score on every tenth game,
which no net has seen, against a target of 0.7 search and 0.3 result; beside it stand those of the search's own score,
of the handwritten evaluation, and of its material and piece-square tables, each at the scale that suits it best. With a
first stage a net begins with the handwritten evaluation at positions one to four random moves away from the games, and
goes on with a quarter of the learning rate; with --rehearse these positions stay in the mix. --save writes
HIDDEN-POSITIONS.npz, and .net where the networks of the search are as wide.

Exit status: 0, 2 bad input, 130 Ctrl-C.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numba
import numpy as np
from netdata import Parser, run_script
from netfit.lessons import LATER_RATE, Epoch, Plan, begin, go_on, read_lessons, yardsticks
from netfit.network import write_network

from psearch.faces.cli.arguments import whole_number
from psearch.files.safe_files import Journal
from psearch.results import PsearchError
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
    parser.add_argument("--hidden", type=_list_of(1, _MOST_HIDDEN), default=[64], metavar="H,..", help="units (64)")
    parser.add_argument("--positions", type=_list_of(1, 10**10), metavar="N,..", help="to train on (all)")
    parser.add_argument("--first-stage", type=whole_number(0, 10**10), default=0, metavar="N", help="positions (0)")
    parser.add_argument("--epochs", type=whole_number(1, 10**4), metavar="N", help="(12; 4 behind a first stage)")
    parser.add_argument("--first-epochs", type=whole_number(1, 10**4), default=8, metavar="N", help="(8)")
    parser.add_argument(
        "--result-share", type=float, default=0.3, metavar="W", help="of the result in the target (0.3)"
    )
    parser.add_argument("--batch", type=whole_number(1, 10**7), default=4096, metavar="N", help="positions (4096)")
    parser.add_argument("--rate", type=float, default=2e-3, metavar="R", help="learning rate at the beginning (0.002)")
    parser.add_argument(
        "--later-rate", type=float, default=LATER_RATE, metavar="F", help=f"of it behind a first stage ({LATER_RATE})"
    )
    parser.add_argument("--rehearse", action="store_true", help="mix the first stage's positions in behind it")
    parser.add_argument("--seed", type=whole_number(0, 10**9), default=1, metavar="N")
    parser.add_argument("--threads", type=whole_number(1, 256), default=numba.config.NUMBA_NUM_THREADS, metavar="N")
    parser.add_argument("--save", type=Path, metavar="FOLDER", help="where the nets are written")
    parser.add_argument(
        "--picture", type=Path, metavar="FILE", help="errors over positions and epochs; needs matplotlib"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="the rows, one a line, added to the file")
    options = parser.parse_args(words)
    if not 0 <= options.result_share <= 1 or not 0 < options.rate < 1:
        parser.error("--result-share must be between 0 and 1, --rate above 0 and below 1")
    return options


def _draw(path: Path, rows: Sequence[dict[str, Any]], sticks: dict[str, float]) -> None:
    """Draw errors over positions, and how each net's error fell."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, (axes, curves) = plt.subplots(1, 2, figsize=(13, 5))
    for hidden in sorted({row["hidden"] for row in rows}):
        points = sorted((row["positions"], row["error"]) for row in rows if row["hidden"] == hidden)
        axes.plot(*zip(*points, strict=True), "o-", label=f"{hidden} hidden units")
    for (name, height), style in zip(sticks.items(), ("-", "--", ":"), strict=False):
        axes.axhline(height, color="grey", linestyle=style, label=name)
    axes.set(xscale="log", xlabel="positions with scores", ylabel="mean squared error of the expected score")
    for row in rows:
        name = f"{row['hidden']} units, {row['positions']:,} positions"
        curves.plot(range(1, row["epochs"] + 1), row["held_out"], "o-", label=f"{name}, held out")
        curves.plot(range(1, row["epochs"] + 1), row["training"], "x:", label=f"{name}, training")
    curves.set(xlabel="epoch", ylabel="mean squared error of the expected score")
    for part in (axes, curves):
        part.legend(fontsize="small")
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def _tell(name: str, curve: list[Epoch], epoch: Epoch) -> None:
    """Keep an epoch's errors; show how far it is, on a terminal."""
    curve.append(epoch)
    if sys.stderr.isatty():
        text = f"{name}, epoch {epoch.number}: {epoch.training_error:.5f}, held out {epoch.test_error:.5f}"
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def _train(options: argparse.Namespace, log: Journal | None) -> int:
    since = time.monotonic()
    lessons = read_lessons(options.games, options.result_share, options.first_stage, seed=options.seed)
    available = len(lessons.positions.training)
    counts = options.positions or [available]
    if not available or max(counts) > available:
        raise PsearchError(f"there are {available:,} positions to train on")
    print(
        f"{lessons.positions.games:,} games, {available:,} positions to train on, "
        f"{len(lessons.positions.test):,} held out, {len(lessons.first):,} for the first stage; read in "
        f"{time.monotonic() - since:.0f} s"
    )
    named = yardsticks(lessons)
    sticks = {
        "search": named.search,
        "handwritten evaluation": named.evaluation,
        "material and piece-square tables": named.material,
    }
    print("; ".join(f"{name} {found:.5f}" for name, found in sticks.items()))
    plan = Plan(
        options.epochs or (4 if len(lessons.first) else 12),
        options.batch,
        options.rate,
        seed=options.seed,
        threads=options.threads,
    )
    rows = []
    for hidden in options.hidden:
        start = begin(lessons, hidden, plan, options.first_epochs, partial(_tell, f"{hidden} units, first stage", []))
        for count in counts:
            since = time.monotonic()
            name = f"{hidden} units, {count:,} positions"
            curve: list[Epoch] = []
            net, error = go_on(
                start, lessons, plan, count, partial(_tell, name, curve), options.later_rate, options.rehearse
            )
            if sys.stderr.isatty():
                print("\r\033[K", end="", file=sys.stderr)
            row = {
                "hidden": hidden,
                "positions": count,
                "error": error,
                "training": [epoch.training_error for epoch in curve],
                "held_out": [epoch.test_error for epoch in curve],
                "first_stage": len(lessons.first),
                "later_rate": options.later_rate,
                "rehearsed": options.rehearse,
                "files": [str(path.name) for path in options.games],
                "seconds": round(time.monotonic() - since, 1),
                **plan._asdict(),
                "first_epochs": options.first_epochs,
                "result_share": options.result_share,
                **{f"error of {name}": found for name, found in sticks.items()},
            }
            rows.append(row)
            print(f"{hidden:>5} units, {count:>12,} positions: {error:.5f} ({row['seconds']:.0f} s)", flush=True)
            if log is not None:
                log.append(row)
            if options.save is not None:
                options.save.mkdir(parents=True, exist_ok=True)
                notes = {"made_by": json.dumps(row), "numpy": np.__version__, "numba": numba.__version__}
                net.save(options.save / f"{hidden}-{count}.npz", **notes)
                if hidden == NETWORK_HIDDEN:
                    write_network(net, options.save / f"{hidden}-{count}.net", notes)
    if options.picture is not None:
        _draw(options.picture, rows, sticks)
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
