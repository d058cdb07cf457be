"""Where the extra nodes of a parallel search are: nodes by depth and expected type, against one worker.

    python bench/study/overhead_by_depth.py --log LOG.jsonl [--workers 8,32] [--every K] [--plot PNG]

LOG is the raw log of `psearch simulate`: every K-th of its positions is searched again in virtual time to the depth
noted there, by one worker and by each count. Printed are the nodes of each depth (plies to go) over those of one
worker, summed over the positions, and what the overhead grows by from one ply to the next.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from study_log import read_serial_rows

from psearch.core.constants import TYPE_NAMES
from psearch.core.records import DEPTHS
from psearch.options import SearchOptions
from psearch.scheduler.scheduler_entries import merge_now
from psearch.simulation.costs import Costs
from psearch.simulation.simulator import Simulator
from psearch.terminal.status import StatusLine
from psearch.terminal.table import text_table
from psearch.text.fen import parse_position

_FEWEST = 100
"""Nodes of one worker at a depth, below which a ratio says nothing."""


def nodes_by_depth(positions: list[dict[str, Any]], workers: int, policy: str, hash_mb: int) -> np.ndarray:
    """Nodes by type and depth, all positions and iterations together; float64, shape (3, depths)."""
    simulator = Simulator(workers, hash_mb, Costs())
    total = np.zeros((len(TYPE_NAMES), DEPTHS))
    with StatusLine() as status:
        for row in positions:
            status(f"{workers} workers, {row['position']}")
            board = parse_position(row["fen"])
            simulator.search(row["position"], board, row["depth"], SearchOptions(policy=policy))
            merge_now(simulator.arena.context)
            total += simulator.arena.header[0]["prediction"]["all_seen"].sum(axis=1)[:, :, 0]
    simulator.close()
    return total


def growth_per_ply(ratios: np.ndarray, depths: np.ndarray) -> float:
    """By what factor the overhead grows for each ply nearer to the leaves, by least squares of its logarithm."""
    return float(np.exp(-np.polyfit(depths, np.log(ratios), 1)[0]))


def draw(path: Path, curves: list[tuple[int, np.ndarray, np.ndarray]]) -> None:
    """A curve for each worker count, as PNG; the root is on the left."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5))
    axes = figure.add_subplot()
    for count, depths, ratios in curves:
        axes.plot(depths, ratios, marker="o", label=f"{count} workers")
    axes.set(xlabel="depth (plies to go)", ylabel="nodes, against one worker", title="Where the extra nodes are")
    axes.invert_xaxis()
    axes.grid(alpha=0.3)
    axes.legend()
    FigureCanvasAgg(figure).print_png(path)


def main() -> None:
    """Read, simulate, print, draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--workers", default="8,32")
    parser.add_argument("--policy", default="calibrated")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--hash", type=int, default=64)
    parser.add_argument("--plot", type=Path)
    options = parser.parse_args()
    positions = read_serial_rows(options.log, "overhead_by_depth")[:: options.every]
    alone = nodes_by_depth(positions, 1, "serial", options.hash)
    enough = alone.sum(axis=0) >= _FEWEST
    enough[0] = False  # quiescence is not counted by depth
    depths = np.flatnonzero(enough)
    curves: list[tuple[int, np.ndarray, np.ndarray]] = []
    print(f"{len(positions)} positions; nodes over those of one worker")
    for count in (int(word) for word in options.workers.split(",")):
        shared = nodes_by_depth(positions, count, options.policy, options.hash)
        ratios = shared.sum(axis=0)[depths] / alone.sum(axis=0)[depths]
        rows = [
            [f"{shared[kind, d] / alone[kind, d]:.2f}" if alone[kind, d] >= _FEWEST else "" for d in depths]
            for kind in range(len(TYPE_NAMES))
        ]
        rows.append([f"{ratio:.2f}" for ratio in ratios])
        names = (*TYPE_NAMES, "all")
        head = ["workers", "type", *(str(depth) for depth in depths)]
        print(text_table(head, [[str(count), name, *row] for name, row in zip(names, rows, strict=True)], left=0))
        print(f"{count} workers: x{growth_per_ply(ratios, depths):.3f} for each ply nearer to the leaves")
        curves.append((count, depths, ratios))
    if options.plot:
        draw(options.plot, curves)


if __name__ == "__main__":
    main()
