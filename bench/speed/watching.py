"""What it costs a search to be looked at, and how much there is to send.

    python bench/speed/watching.py [--threads N] [--seconds S] [--rounds R] [--rate HZ] [--only cost,size]

cost: the same positions by three engines of N workers in turn: one that notes nothing, one whose workers note what they
do (`watched`), and one that is looked at HZ times a second as well, at its open nodes every fourth time, as by the
page. Nodes a second against the first, geometric means over the searches with a 95% bootstrap interval, by the clock
and by the CPU time of the workers; and the CPU time of looking, in percent of a core. size: bytes of a snapshot as
JSON, by real workers and by 64 and 1,024 virtual ones.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import chess
import chess.engine
import numpy as np

import psearch
from psearch.bench import BENCH_POSITIONS
from psearch.core.toolchain import groups
from psearch.lab.studies.speedup_study import mean_interval
from psearch.lab.watching.watcher import WatchedSearch, Watcher
from psearch.options import SearchOptions
from psearch.simulation.costs import Costs
from psearch.simulation.simulation_entries import VIRTUAL
from psearch.simulation.simulator import Simulator

ARMS = ("plain", "noted", "looked at")
TICKS_PER_MS = 10**9


def cpu_s(engine: psearch.Engine) -> float:
    """CPU time of the workers of an engine so far. Source: clock_getcpuclockid(3)."""
    supervisor = engine._searcher._supervisor
    assert supervisor is not None
    return sum(time.clock_gettime(~worker.pid << 3 | 2) for worker in supervisor.pool.workers)


class Looking:
    """Looks at an engine in a thread, while inside."""

    def __init__(self, engine: psearch.Engine, rate: float) -> None:
        self.watcher = Watcher(engine)
        self.rate = rate
        self.looks = 0
        self.cpu_s = 0.0
        self.bytes: list[int] = []

    @contextmanager
    def running(self) -> Iterator[None]:
        over = threading.Event()
        thread = threading.Thread(target=self._run, args=(over,))
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _run(self, over: threading.Event) -> None:
        began = time.thread_time()
        while not over.wait(1 / self.rate):
            snapshot = self.watcher.look(with_nodes=self.looks % 4 == 0)
            self.looks += 1
            if snapshot is not None and snapshot["fen"] is not None:
                self.bytes.append(len(json.dumps(snapshot)))
        self.cpu_s += time.thread_time() - began


def interval(logs: list[float]) -> str:
    """The geometric mean of ratios, given by their logarithms, with its interval."""
    values = np.array(logs)
    low, high = np.exp(mean_interval(values))
    return f"{math.exp(values.mean()):.4f} ({low:.4f} to {high:.4f})"


def measure_cost(threads: int, seconds: float, rounds: int, rate: float) -> None:
    limit = chess.engine.Limit(time=seconds)
    ratios: dict[str, list[float]] = {arm: [] for arm in ARMS[1:]}
    by_cpu: dict[str, list[float]] = {arm: [] for arm in ARMS[1:]}
    with ExitStack() as stack:
        engines = {
            arm: stack.enter_context(psearch.Engine(threads=threads, hash_mb=64, watched=arm != "plain"))
            for arm in ARMS
        }
        looking = Looking(engines["looked at"], rate)
        for number in range(rounds):
            board = chess.Board(BENCH_POSITIONS[number % len(BENCH_POSITIONS)], chess960=True)
            speeds, efficiencies = {}, {}
            for place in range(len(ARMS)):
                arm = ARMS[(place + number) % len(ARMS)]  # each is first, second and last as often
                engine = engines[arm]
                engine.new_game()
                before = cpu_s(engine)
                if arm == "looked at":
                    with looking.running():
                        info = engine.analyse(board, limit)
                else:
                    info = engine.analyse(board, limit)
                speeds[arm] = info["nodes"] / info["time"]
                efficiencies[arm] = info["nodes"] / (cpu_s(engine) - before)
            for arm in ARMS[1:]:
                ratios[arm].append(math.log(speeds[arm] / speeds["plain"]))
                by_cpu[arm].append(math.log(efficiencies[arm] / efficiencies["plain"]))
    print(f"{threads} workers, {len(ratios['noted'])} positions of {seconds:g} s, {rate:g} looks a second")
    for arm in ARMS[1:]:
        print(f"  {arm:<10} nodes a second x{interval(ratios[arm])}, of CPU time of workers x{interval(by_cpu[arm])}")
    spent = looking.cpu_s / max(looking.looks, 1)
    share = looking.cpu_s / (seconds * len(ratios["noted"]))
    print(f"  a look with its JSON takes {1000 * spent:.2f} ms: {share:.1%} of a core")
    report_bytes(f"{threads} real workers", looking.bytes)


def report_bytes(what: str, sizes: list[int]) -> None:
    ordered = sorted(sizes)
    print(
        f"  {what}: {len(ordered)} snapshots of {statistics.median(ordered):,.0f} bytes (median), "
        f"{ordered[int(0.95 * (len(ordered) - 1))]:,} (95%), {ordered[-1]:,} at most"
    )


def measure_size(workers: int, looks: int = 100) -> None:
    """Twenty looks in each second of virtual time would be few: a look each virtual millisecond sees as many changes
    as one of 1,024 real workers in 50 ms of a machine that has fewer cores."""
    groups.load(VIRTUAL)
    simulator = Simulator(workers, 64, Costs(), 1 << 10)
    try:
        recorder = simulator.recorder
        assert recorder is not None
        recorder.begin()
        simulator.begin(chess.Board(BENCH_POSITIONS[3], chess960=True), SearchOptions(), 10.0)
        search = WatchedSearch(recorder)
        sizes, spent = [], 0.0
        for number in range(1, looks + 1):
            clock = number * TICKS_PER_MS
            if simulator.advance_to(clock):
                break
            began = time.thread_time()
            snapshot = search.look(virtual_now=clock)
            spent += time.thread_time() - began
            sizes.append(len(json.dumps(snapshot)))
    finally:
        simulator.close()
    report_bytes(f"{workers:,} virtual workers", sizes)
    print(f"    a look takes {1000 * spent / len(sizes):.2f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=48)
    parser.add_argument("--rate", type=float, default=20.0)
    parser.add_argument("--only", default="cost,size")
    options = parser.parse_args()
    only = options.only.split(",")
    if "cost" in only:
        measure_cost(options.threads, options.seconds, options.rounds, options.rate)
    if "size" in only:
        for workers in (2, 64, 1024):
            measure_size(workers)


if __name__ == "__main__":
    main()
