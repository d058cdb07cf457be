"""What publishing costs: one worker that opens nodes although nobody can join, against one that opens nothing.

    python bench/speed/publishing.py [--rounds N] [--depth D] [--policy P]

Both search the same tree, to the node. They alternate; the figure is the median of the ratios of their speeds.
"""

from __future__ import annotations

import argparse
import statistics

from psearch.bench import BENCH_POSITIONS
from psearch.options import SearchOptions
from psearch.processes.request import SearchRequest
from psearch.processes.supervisor import Supervisor
from psearch.results import Limits
from psearch.text.fen import parse_position


def run(engine: Supervisor, policy: str, depth: int) -> tuple[int, int, float]:
    """Nodes, nodes opened and seconds over all positions, each from an empty table."""
    nodes = opens = 0
    seconds = 0.0
    for fen in BENCH_POSITIONS:
        engine.forget()
        request = SearchRequest(parse_position(fen), Limits(depth=depth), SearchOptions(policy=policy))
        info = engine.search(request).info
        nodes += info.nodes
        seconds += info.time_s
        opens += int(engine.arena.worker["counters"]["opens"].sum())
    return nodes, opens, seconds


def main() -> None:
    """Alternate and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--depth", type=int, default=9)
    parser.add_argument("--policy", default="calibrated")
    options = parser.parse_args()
    ratios = []
    with Supervisor(threads=1, hash_mb=64) as engine:
        for number in range(options.rounds):
            order = ["serial", options.policy]
            found = {policy: run(engine, policy, options.depth) for policy in order[:: 1 if number % 2 else -1]}
            nodes, opens, seconds = found[options.policy]
            alone, _, seconds_alone = found["serial"]
            if nodes != alone:
                raise SystemExit(f"{options.policy} searched {nodes} nodes, serial {alone}")
            ratios.append(seconds_alone / seconds)
            print(f"{nodes} nodes, {opens} opened, speed x{ratios[-1]:.4f}", flush=True)
    print(f"median x{statistics.median(ratios):.4f} of the serial speed")


if __name__ == "__main__":
    main()
