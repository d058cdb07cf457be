"""The speedup study: time to depth with real processes, worker counts alternating.

For each position the depth is the one that takes one worker about `seconds`, in a search apart (`depths`). Each
measurement starts with an empty table and a history of its own. What two cores are worth at most is measured too:
independent one-worker searches side by side.
"""

from __future__ import annotations

import math
import statistics
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import chess
import numpy as np

from psearch.arena.setup import perturb_history
from psearch.arena.subject import Subject, board_text
from psearch.lab.studies import StudyProgress
from psearch.lab.studies.depths import nearest_depth, sample_seed, survey_seed
from psearch.options import SearchOptions, options_with
from psearch.processes.control import SearchControl
from psearch.processes.request import SearchRequest
from psearch.processes.supervisor import Supervisor
from psearch.results import Info, Limits, PsearchError, Result
from psearch.terminal.streams import glossary, text_table
from psearch.text.epd_text import SuitePosition
from psearch_core.toolchain.kernel_sets import KernelSet

if TYPE_CHECKING:
    from psearch.games.searching import GameSuitePosition
    from psearch.simulation.simulator import VirtualSample

_LONGEST = 12
"""A depth that takes more than this many times the wanted seconds is not waited for."""


@dataclass(frozen=True)
class Sample:
    """One search to a fixed depth; a line of the raw log."""

    position: str
    fen: str
    depth: int
    policy: str
    threads: int
    repeat: int
    seconds: float
    nodes: int
    score: str
    bestmove: str
    """of a game of the user's: its number, as the search counts it"""
    splits: int
    joins: int
    aborted_nodes: int
    idle_share: float
    pruning: str = ""
    """as `pruning_text` gives it; empty in logs that are older than the modes"""
    history: int = 0
    """seed of the perturbed history; 0: it was empty"""


@dataclass(frozen=True)
class Row:
    """One policy at one worker count, against one worker."""

    policy: str
    threads: int
    positions: int
    speedup: float
    """time of one worker over the time of this count: geometric mean over the positions, and over repeats in each"""
    low: float | None
    high: float | None
    """bootstrap interval of 95% over positions; None: one position has none"""
    nps_scaling: float
    node_overhead: float
    idle_share: float
    splits: float
    joins: float
    aborted_share: float

    @property
    def interval(self) -> str:
        """In words."""
        return "-" if self.low is None or self.high is None else f"{self.low:.2f} - {self.high:.2f}"


def find_depth(
    engine: Supervisor, board: chess.Board | Subject, seconds: float, options: SearchOptions, history: int
) -> int | None:
    """Return the depth whose iterations take one worker about `seconds` in all, from a history of this seed.

    None where a forced mate or draw ends every iteration at once.
    """
    control = SearchControl()
    found: dict[int, float] = {}

    def watch(info: Info) -> None:
        if info.bound == "exact":
            found.setdefault(info.depth, info.time_s)
            if info.time_s >= seconds:
                control.stop()

    limit = Limits(movetime_ms=int(1000 * max(seconds * _LONGEST, 0.05)))
    _forget(engine, history)
    engine.search(SearchRequest(board, limit, options, on_info=watch, control=control))
    return nearest_depth(found, seconds)


def _forget(engine: Supervisor, history: int) -> None:
    """Forget everything, but for a history of this seed."""
    engine.forget()
    perturb_history(engine.arena, history)


def measure(
    suite: Sequence[SuitePosition | GameSuitePosition],
    threads: Sequence[int],
    policies: Sequence[str],
    seconds: float,
    repeats: int,
    hash_mb: int,
    depth: int | None = None,
    options: SearchOptions | None = None,
    progress: StudyProgress | None = None,
    on_sample: Callable[[Sample], None] | None = None,
    seed: int = 0,
    kernels: Mapping[str, KernelSet] | None = None,
) -> list[Sample]:
    """Search every position with every policy and worker count, alternating within each repeat.

    With `depth` every position is searched to it; otherwise to the depth that takes one worker about `seconds`, and
    positions without such a depth are left out. Every search has a history of its own, drawn from `seed`. `on_sample`
    gets each search when it is finished: what a caller keeps when this is interrupted. options: of all searches, but
    for the policy; kernels: by policy, of files.
    """
    counts = sorted({1, *threads})
    total = len(suite) * repeats * (1 + (len(counts) - 1) * len(policies))
    left_out = 0
    samples: list[Sample] = []
    every = options or SearchOptions()
    serial, *chosen = (options_with(every, policy, kernels or {}) for policy in ("serial", *policies))
    engines: dict[tuple[int, KernelSet], Supervisor] = {}
    try:
        for count in counts:
            for how in chosen if count > 1 else (serial, chosen[0]):
                if (count, how.kernels) not in engines:
                    engines[count, how.kernels] = Supervisor(count, hash_mb, kernels=how.kernels)
        for number, position in enumerate(suite, start=1):
            fen = board_text(position.board)
            wanted = depth or find_depth(
                engines[1, serial.kernels], position.board, seconds, serial, survey_seed(seed, fen)
            )
            if wanted is None:
                total -= total // (len(suite) - left_out)
                left_out += 1
                continue
            for repeat in range(repeats):
                for count in counts:
                    for how in chosen if count > 1 else chosen[:1]:
                        history = sample_seed(seed, fen, how.policy, count, repeat)
                        engine = engines[count, how.kernels]
                        sample = _search_once(engine, position, wanted, repeat, how, history)
                        samples.append(sample)
                        if on_sample:
                            on_sample(sample)
                        if progress:
                            progress(
                                f"{number}/{len(suite)} depth {wanted} repeat {repeat + 1}/{repeats}: {count} x "
                                f"{how.policy} {sample.seconds:.2f} s",
                                len(samples),
                                total,
                            )
    finally:
        for engine in engines.values():
            engine.close()
    return samples


def _search_once(
    engine: Supervisor,
    position: SuitePosition | GameSuitePosition,
    depth: int,
    repeat: int,
    options: SearchOptions,
    history: int,
) -> Sample:
    _forget(engine, history)
    result: Result = engine.search(SearchRequest(position.board, Limits(depth=depth), options))
    info = result.info
    return Sample(
        position=position.name,
        fen=board_text(position.board),
        depth=depth,
        policy=options.policy,
        threads=len(info.workers),
        repeat=repeat,
        seconds=info.time_s,
        nodes=info.nodes,
        score=str(info.score.relative),
        bestmove=str(result.bestmove or ""),
        splits=sum(worker.splits for worker in info.workers),
        joins=sum(worker.joins for worker in info.workers),
        aborted_nodes=sum(worker.aborted_nodes for worker in info.workers),
        idle_share=statistics.fmean(worker.idle_share for worker in info.workers),
        pruning=options.pruning_words if isinstance(position.board, chess.Board) else "",
        history=history,
    )


Samples = Sequence["Sample | VirtualSample"]


def mean_logs(samples: Samples, field: str) -> dict[str, float]:
    """Return of each position the mean logarithm of `field`, over its repeats."""
    by_position: dict[str, list[float]] = {}
    for sample in samples:
        by_position.setdefault(sample.fen, []).append(math.log(getattr(sample, field)))
    return {fen: statistics.fmean(logs) for fen, logs in by_position.items()}


def _ratios(samples: Samples, base: Samples, field: str) -> np.ndarray:
    """Per position the logarithm of `field` in `samples` over that in `base`, of geometric means over repeats."""
    over, under = mean_logs(samples, field), mean_logs(base, field)
    return np.array([over[fen] - under[fen] for fen in over])


def mean_interval(values: np.ndarray, rounds: int = 2000) -> tuple[float, float]:
    """Return the 95% interval of the mean of `values`, of shape (n,): percentile bootstrap, the same every time.

    `scipy.stats.bootstrap` does as much, but scipy is no dependency of `psearch speedup`.
    """
    picks = np.random.default_rng(1).integers(values.size, size=(rounds, values.size))
    low, high = np.quantile(values[picks].mean(axis=1), (0.025, 0.975))
    return float(low), float(high)


def compare(samples: Samples, base: Samples) -> Row:
    """Return what `samples`, of one policy and count, are against `base`, which has all their positions."""
    times, nodes = _ratios(samples, base, "seconds"), _ratios(samples, base, "nodes")
    low, high = np.exp(mean_interval(-times)).tolist() if len(times) > 1 else (None, None)
    return Row(
        policy=samples[0].policy,
        threads=samples[0].threads,
        positions=len(times),
        speedup=math.exp(-times.mean()),
        low=low,
        high=high,
        nps_scaling=math.exp((nodes - times).mean()),
        node_overhead=math.exp(nodes.mean()),
        idle_share=statistics.fmean(sample.idle_share for sample in samples),
        splits=statistics.fmean(sample.splits for sample in samples),
        joins=statistics.fmean(sample.joins for sample in samples),
        aborted_share=sum(s.aborted_nodes for s in samples) / max(sum(s.nodes for s in samples), 1),
    )


def summarise(samples: Samples) -> list[Row]:
    """Return one row per policy and worker count above one, against the searches with one worker.

    Only positions that one worker has searched count: an interrupted study may have others. Raises PsearchError when
    a position was searched to several depths, or a search took no time.
    """
    if any(sample.seconds <= 0 or sample.nodes <= 0 for sample in samples):
        raise PsearchError("a search without time or nodes: there is nothing to compare")
    base = [sample for sample in samples if sample.threads == 1]
    if len({(sample.fen, sample.depth) for sample in samples}) != len({sample.fen for sample in samples}):
        raise PsearchError("a position was searched to several depths: these samples cannot be compared")
    if len({sample.pruning for sample in samples}) > 1:
        raise PsearchError("the searches differ in what was pruned: these samples cannot be compared")
    known = {sample.fen for sample in base}
    compared = [sample for sample in samples if sample.threads > 1 and sample.fen in known]
    groups = sorted({(sample.policy, sample.threads) for sample in compared})
    return [compare([s for s in compared if (s.policy, s.threads) == group], base) for group in groups]


def hardware_ceiling(
    suite: Sequence[SuitePosition | GameSuitePosition],
    count: int,
    hash_mb: int,
    seconds: float,
    rounds: int,
    options: SearchOptions | None = None,
    progress: StudyProgress | None = None,
) -> float:
    """Return the speed of `count` independent one-worker searches side by side over that of one alone, in nodes per
    second.

    Alone and side by side alternate; the median of the ratios. No parallel search on this machine can do better.
    """
    how = options or SearchOptions(policy="serial")
    engines = [Supervisor(1, hash_mb, kernels=how.kernels) for _ in range(count)]
    limits = Limits(movetime_ms=int(seconds * 1000))
    ratios = []
    try:
        for number in range(rounds):
            board = suite[number % len(suite)].board
            speeds = [side_by_side(group, board, limits, how) for group in (engines[:1], engines)]
            ratios.append(speeds[1] / speeds[0])
            if progress:
                progress(f"ceiling {number + 1}/{rounds}: {ratios[-1]:.3f}", number + 1, rounds)
    finally:
        for engine in engines:
            engine.close()
    return statistics.median(ratios)


def side_by_side(
    engines: Sequence[Supervisor], board: chess.Board | Subject, limits: Limits, options: SearchOptions
) -> float:
    """Return nodes per second of all engines together, each with a search of its own of one position, from an empty
    table."""
    speeds: list[float] = []

    def run(engine: Supervisor) -> None:
        engine.forget()
        info = engine.search(SearchRequest(board, limits, options)).info
        speeds.append(info.nodes / info.time_s)

    threads = [threading.Thread(target=run, args=(engine,)) for engine in engines]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(speeds)


def table(rows: Sequence[Row], ceilings: Mapping[int, float] | None = None) -> str:
    """Return the summary as text; `ceilings`, by worker count, are those of the hardware."""
    head = [
        "policy",
        "workers",
        "speedup",
        "95% interval",
        "ceiling",
        "nps",
        "nodes",
        "idle",
        "splits",
        "joins",
        "aborted",
    ]
    lines = []
    for row in rows:
        ceiling = ceilings.get(row.threads) if ceilings is not None else None
        lines.append(
            [
                row.policy,
                f"{row.threads}",
                f"{row.speedup:.2f}",
                row.interval,
                f"{ceiling:.2f}" if ceiling is not None else "-",
                f"{row.nps_scaling:.2f}",
                f"{row.node_overhead:.2f}",
                f"{row.idle_share:.1%}",
                f"{row.splits:,.0f}",
                f"{row.joins:,.0f}",
                f"{row.aborted_share:.2%}",
            ]
        )
    if ceilings is None:
        for line in [head, *lines]:
            del line[4]
    return text_table(head, lines)


def legend(rows: Sequence[Row], ceilings: bool = False) -> str:
    """Return what the columns of the table are."""
    meanings = [
        ("speedup", "time of one worker over that of so many workers"),
        ("95% interval", "of the speedup, by drawing positions again (bootstrap)"),
        ("ceiling", "speed of so many searches side by side that share nothing"),
        ("nps, nodes", "nodes per second, and nodes in all, times those of one worker"),
        ("idle", "share of the workers' time without work"),
        ("splits, joins", "nodes that had helpers, and moves that helpers took there, a search"),
        ("aborted", "share of the nodes that were thrown away, because a cutoff came meanwhile"),
    ]
    if any(row.low is None for row in rows):
        meanings[1] = ("95% interval", "-: one position has none, for it says nothing about others")
    if not ceilings:
        del meanings[2]
    return "Means over the positions, against one worker on the same trees:\n" + glossary(meanings)
