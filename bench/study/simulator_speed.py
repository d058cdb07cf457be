"""The simulator's error in speed: nodes per second of two workers over those of one, real and virtual.

    python bench/study/simulator_speed.py --suite FILE [--minutes M] [--nodes N] [--every K]
                                          [--calibrate | --costs FILE] [--hash MB] [--out FILE]

Every K-th position of the suite is searched to the depth for which one worker needs about N nodes: by one worker
process, by two that share it, and by two that search it independently, in turn, again and again until the minutes are
over; then once by one and by two virtual workers. Printed are the ratios by position, medians of the repeats, and their
geometric means with 95% intervals over the positions. With --calibrate the costs are measured first, as
calibrate.py does. Nothing else should be running: the independent searches tell, which should be near 2.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import chess
import numpy as np
from calibrate import calibrate
from cost_kernels.cost_entries import MICRO_COSTS, TIMED_LOCKS

from psearch.defaults import JOB_HASH_MB
from psearch.faces.cli.arguments import add_hash
from psearch.faces.cli.kernels import prepare_kernels
from psearch.lab.studies.depths import is_decided, nearest_depth
from psearch.lab.studies.speedup_study import mean_interval, side_by_side
from psearch.options import SearchOptions
from psearch.processes.supervisor import Supervisor
from psearch.results import Limits, PsearchError
from psearch.simulation.costs import Costs
from psearch.simulation.simulator import Simulator
from psearch.terminal.status import StatusLine
from psearch.terminal.table import text_table
from psearch.text.epd_text import SuitePosition, read_suite

_ALONE, _SHARED, _BESIDE = "one", "two", "independent"
Speeds = dict[str, list[float]]
"""Nodes per second, by how they were searched."""


def main() -> None:
    """Calibrate, search, simulate, compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=7.0)
    parser.add_argument("--nodes", type=int, default=400_000)
    parser.add_argument("--every", type=int, default=1)
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--calibrate", action="store_true")
    source.add_argument("--costs", type=Path)
    add_hash(parser, JOB_HASH_MB)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    suite = read_suite(options.suite)[:: options.every]
    prepare_kernels(MICRO_COSTS, TIMED_LOCKS)
    with StatusLine() as status:
        costs = Costs.load(options.costs) if options.costs else Costs()
        if options.calibrate:
            costs = calibrate(progress=status).costs
        depths = _depths(suite, options.nodes, options.hash)
        searched = [(position, depth) for position, depth in zip(suite, depths, strict=True) if depth > 0]
        if len(searched) < 2:
            raise PsearchError(f"fewer than two positions take one worker {options.nodes:,} nodes at any depth")
        real = _real_speeds(searched, options.hash, 60 * options.minutes, status)
        virtual = _virtual_speeds(searched, options.hash, costs, status)
    if options.out:
        facts = {"costs": vars(costs), "nodes": options.nodes, "real": real, "virtual": virtual}
        options.out.write_text(json.dumps(facts) + "\n", "utf-8")
    _print(searched, real, virtual)


def _depths(suite: Sequence[SuitePosition], nodes: int, hash_mb: int) -> list[int]:
    """Of every position the depth whose serial search has about so many nodes; 0: there is none."""
    simulator = Simulator(1, hash_mb, Costs())
    serial = SearchOptions(policy="serial")
    try:
        sizes = [simulator.iterations(one.board, serial, partial(is_decided, wanted=nodes)) for one in suite]
    finally:
        simulator.close()
    return [nearest_depth(of_one, nodes) or 0 for of_one in sizes]


def _real_speeds(
    searched: Sequence[tuple[SuitePosition, int]], hash_mb: int, seconds: float, status: StatusLine
) -> list[Speeds]:
    """Of every position: round after round, at least one, until the time is over."""
    speeds: list[Speeds] = [defaultdict(list) for _ in searched]
    engines = [Supervisor(1, hash_mb), Supervisor(1, hash_mb)]
    both = Supervisor(2, hash_mb)
    end = time.monotonic() + seconds
    rounds = 0
    try:
        while rounds == 0 or time.monotonic() < end:
            rounds += 1
            for number, ((position, depth), found) in enumerate(zip(searched, speeds, strict=True)):
                status(f"real, round {rounds}, position {number + 1}/{len(searched)}")
                found[_ALONE].append(_speed(engines[:1], position.board, depth))
                found[_SHARED].append(_speed([both], position.board, depth))
                found[_BESIDE].append(_speed(engines, position.board, depth))
                if rounds > 1 and time.monotonic() >= end:
                    break
    finally:
        for engine in (*engines, both):
            engine.close()
    return [dict(found) for found in speeds]


def _speed(engines: Sequence[Supervisor], board: chess.Board, depth: int) -> float:
    return side_by_side(engines, board, Limits(depth=depth), SearchOptions())


def _virtual_speeds(
    searched: Sequence[tuple[SuitePosition, int]], hash_mb: int, costs: Costs, status: StatusLine
) -> list[Speeds]:
    speeds: list[Speeds] = [{} for _ in searched]
    for workers, how in ((1, _ALONE), (2, _SHARED)):
        simulator = Simulator(workers, hash_mb, costs)
        for number, (position, depth) in enumerate(searched):
            status(f"{workers} virtual, position {number + 1}/{len(searched)}", number, len(searched))
            sample = simulator.search(position.name, position.board, depth, SearchOptions())
            speeds[number][how] = [sample.nodes / sample.seconds]
        simulator.close()
    return speeds


def _print(searched: Sequence[tuple[SuitePosition, int]], real: list[Speeds], virtual: list[Speeds]) -> None:
    def ratios(speeds: list[Speeds], how: str) -> np.ndarray:
        return np.array([statistics.median(one[how]) / statistics.median(one[_ALONE]) for one in speeds])

    shared, beside, simulated = ratios(real, _SHARED), ratios(real, _BESIDE), ratios(virtual, _SHARED)
    rows = [
        [position.name, str(depth), f"{a:.3f}", f"{b:.3f}", f"{c:.3f}", f"{c / a - 1:+.1%}"]
        for (position, depth), a, b, c in zip(searched, shared, beside, simulated, strict=True)
    ]
    print(text_table(["position", "depth", "two real", "independent", "two virtual", "error"], rows))

    def mean(values: np.ndarray) -> str:
        low, high = np.exp(mean_interval(np.log(values)))
        return f"x{np.exp(np.log(values).mean()):.3f} ({low:.3f} to {high:.3f})"

    print(f"{len(rows)} positions, {sum(len(one[_SHARED]) for one in real)} rounds; nodes/s over those of one worker:")
    print(f"two independent searches {mean(beside)}, two workers {mean(shared)}, virtual {mean(simulated)}")
    print(f"virtual over real: {mean(simulated / shared)}")


if __name__ == "__main__":
    main()
