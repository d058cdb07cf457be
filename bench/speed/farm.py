"""What a farm of positions is worth: against engines behind python-chess's protocol, and against searches side by side.

    python bench/speed/farm.py [--workers N] [--pairs N] [--only protocol,small,alone] [--positions N] [--log FILE]

protocol: positions of 1,000 nodes by `psearch.analyse_many`, and by as many engines `psearch uci`, each behind a
`chess.engine.SimpleEngine` in a thread of its own that takes the next position when it has done one. Every position is
a new game there (`ucinewgame`), so that the answers are those of the farm; the engines are started before the clock.
small: the same with `Hash` 1 in the engines, which then have no large table to empty. alone: positions a second of the
farm, and of as many processes that search an equal share each with nothing around it, for 1,000 nodes and for 100,000.

Runs are in alternating pairs; the ratio is the median of those of the pairs. CPU is that of all processes together,
which a machine that does other things as well changes less than the time: its ratio is what the time's would be on a
machine with nothing else to do and all cores busy. The positions are from games of random moves, the same each time.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any, NamedTuple

import chess
import chess.engine
from supervising import children, cpu_s

import psearch
from psearch.batch.positions.many import useful_hash_mb
from psearch.files.append_only import Journal
from psearch.processes.request import SearchRequest
from psearch.processes.supervisor import Supervisor
from psearch.results import Limits
from psearch.text.fen import parse_position

ENGINE = [sys.executable, "-c", "import sys; from psearch.faces.cli.main import main; sys.exit(main())", "uci"]
MODES = ("protocol", "small", "alone")
SHORT, LONG = 1_000, 100_000


def positions(count: int) -> list[str]:
    """FENs in which the game goes on."""
    chance = random.Random(1)
    found: list[str] = []
    while len(found) < count:
        board = chess.Board()
        for _ in range(chance.randrange(4, 80)):
            if board.is_game_over():
                break
            board.push(chance.choice(list(board.legal_moves)))
        if not board.is_game_over():
            found.append(board.fen())
    return found


class Spent(NamedTuple):
    """By a run."""

    seconds: float
    cpu_s: float


class Stopwatch:
    """From where it is made."""

    def __init__(self) -> None:
        self._cpu_s = _cpu_s()
        self._began = time.perf_counter()

    def spent(self) -> Spent:
        """Up to now. No process may have ended since."""
        seconds = time.perf_counter() - self._began
        return Spent(seconds, _cpu_s() - self._cpu_s)


def _cpu_s() -> float:
    """Of this process and all below it."""
    return sum(map(cpu_s, (os.getpid(), *children(os.getpid()))))


def by_farm(fens: list[str], nodes: int, workers: int, reads: bool) -> Spent:
    """From the moment in which the workers are there. reads: with lines and scores as python-chess's types."""
    with psearch.analyse_many([*fens[:workers], *fens], chess.engine.Limit(nodes=nodes), workers=workers) as results:
        for _ in range(workers):  # their starts
            next(results)
        watch = Stopwatch()
        for number, result in enumerate(results, start=1):
            if result.error is not None or (reads and not result.pv):
                raise RuntimeError("no answer")
            if number == len(fens):
                spent = watch.spent()
    return spent


def by_protocol(fens: list[str], nodes: int, workers: int, options: dict[str, Any]) -> Spent:
    """By engines behind python-chess, without their starts."""
    engines = [chess.engine.SimpleEngine.popen_uci(ENGINE) for _ in range(workers)]
    for engine in engines:
        engine.configure(options)
        engine.analyse(chess.Board(), chess.engine.Limit(nodes=nodes))
    waiting: Iterator[str] = iter(fens)
    lock = threading.Lock()

    def run(engine: chess.engine.SimpleEngine) -> None:
        while True:
            with lock:
                fen = next(waiting, None)
            if fen is None:
                return
            info = engine.analyse(chess.Board(fen), chess.engine.Limit(nodes=nodes), game=object())
            if not info["pv"]:
                raise RuntimeError("no answer")

    threads = [threading.Thread(target=run, args=(engine,)) for engine in engines]
    watch = Stopwatch()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    spent = watch.spent()
    for engine in engines:
        engine.quit()
    return spent


def alone(fens: list[str], nodes: int, barrier: Barrier) -> None:
    """A share, by a search after the other with nothing around."""
    limits = Limits(nodes=nodes)
    with Supervisor(1, useful_hash_mb(limits), "inline") as engine:
        engine.search(SearchRequest(chess.Board(), limits))
        barrier.wait()
        for fen in fens:
            engine.forget()
            engine.search(SearchRequest(parse_position(fen), limits))
        barrier.wait()
        barrier.wait()


def side_by_side(fens: list[str], nodes: int, workers: int) -> Spent:
    """Until the last process has done its share."""
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(workers + 1)
    processes = [
        context.Process(target=alone, args=(fens[number::workers], nodes, barrier)) for number in range(workers)
    ]
    for process in processes:
        process.start()
    barrier.wait()
    watch = Stopwatch()
    barrier.wait()
    spent = watch.spent()
    barrier.wait()
    for process in processes:
        process.join()
    return spent


def compare(name: str, pairs: int, farm: Callable[[], Spent], other: Callable[[], Spent], count: int) -> dict[str, Any]:
    """Both in turn, which of them first by turns, too."""
    samples = []
    for pair in range(pairs):
        if pair % 2:
            second = other()
            first = farm()
        else:
            first = farm()
            second = other()
        samples.append((first, second))
    ratio, cpu_ratio = (
        statistics.median(second[what] / first[what] for first, second in samples) for what in range(len(Spent._fields))
    )
    words = []
    for side, who in enumerate(("farm", "other")):
        seconds, cpu = (statistics.median(sample[side][what] for sample in samples) for what in (0, 1))
        words.append(f"{who} {count / seconds:8.1f}/s, {1000 * cpu / count:7.2f} ms CPU")
    print(f"{name:<22}  {'   '.join(words)}   ratio {ratio:.3f}, CPU {cpu_ratio:.3f}", flush=True)
    return {"name": name, "positions": count, "samples": samples, "ratio": ratio, "cpu_ratio": cpu_ratio}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--only", default=",".join(MODES))
    parser.add_argument("--positions", type=int, default=1_000)
    parser.add_argument("--log", type=Path)
    options = parser.parse_args()
    try:
        log = None if options.log is None else Journal.at_end(options.log, b'{"name": ')
    except (OSError, ValueError) as error:
        parser.error(str(error))
    wanted = options.only.split(",")
    workers, pairs = options.workers, options.pairs
    fens = positions(options.positions)
    few = fens[: max(workers, options.positions // 10)]
    # the program has no threads when it forks, so all are forked by itself: these first
    found = []
    if "alone" in wanted:
        for nodes, some in ((SHORT, fens), (LONG, few)):
            name = f"alone, {nodes:,} nodes"
            found.append(
                compare(
                    name,
                    pairs,
                    partial(by_farm, some, nodes, workers, reads=False),
                    partial(side_by_side, some, nodes, workers),
                    len(some),
                )
            )
    for mode, values in (("protocol", {}), ("small", {"Hash": 1})):
        if mode in wanted:
            found.append(
                compare(
                    mode,
                    pairs,
                    partial(by_farm, fens, SHORT, workers, reads=True),
                    partial(by_protocol, fens, SHORT, workers, values),
                    len(fens),
                )
            )
    if log is not None:
        for one in found:
            log.append({**one, "workers": workers})


if __name__ == "__main__":
    main()
