"""The speedup study: measures the time to depth with real processes, alternating worker counts.

A separate search finds the depth that takes one worker about `seconds` (`tree_sizes`). Each measurement starts with an
empty table and its own history. Independent searches side by side measure the ceiling of the hardware.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import chess

from psearch.arena.setup import Subject, board_text, perturb_history
from psearch.lab.studies import StudyProgress
from psearch.lab.studies.tree_sizes import nearest_depth, sample_seed, survey_seed
from psearch.options import SearchOptions, options_with
from psearch.processes.control import SearchControl
from psearch.processes.request import SearchRequest
from psearch.processes.supervisor import Supervisor
from psearch.results import Info, Limits, Result
from psearch.text.epd_text import SuitePosition
from psearch_core.toolchain.kernel_sets import KernelSet

if TYPE_CHECKING:
    from psearch.games.searching import GameSuitePosition

_LONGEST = 12
"""Time after which the search for a depth ends, as a multiple of the wanted seconds."""
_WHOLE = 0.5
"""Least share of its time that a search of a ceiling takes."""


@dataclass(frozen=True)
class Sample:
    """Result of one search to a fixed depth; a line of the raw log."""

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
    """Best move in UCI notation; in a user's game, the number of the move."""
    splits: int
    joins: int
    aborted_nodes: int
    idle_share: float
    pruning: str = ""
    """Pruning as `pruning_text` gives it; empty in logs older than the modes."""
    history: int = 0
    """Seed of the random history; 0: the history was empty."""


def _search(
    engine: Supervisor, board: chess.Board | Subject, history: int, options: SearchOptions, limits: Limits, **how: Any
) -> Result:
    """Search with an empty table and a random history."""
    engine.forget()
    perturb_history(engine.arena, history)
    return engine.search(SearchRequest(board, limits, options, **how))


def _find_depth(
    engine: Supervisor, board: chess.Board | Subject, seconds: float, options: SearchOptions, history: int
) -> int | None:
    """Return the depth whose iterations take one worker about `seconds` in total, or None if there is none because a
    forced mate or draw ends every iteration at once. history: seed."""
    control = SearchControl()
    found: dict[int, float] = {}

    def watch(info: Info) -> None:
        if info.bound == "exact":
            found.setdefault(info.depth, info.time_s)
            if info.time_s >= seconds:
                control.stop()

    limits = Limits(movetime_ms=int(1000 * max(seconds * _LONGEST, 0.05)))
    _search(engine, board, history, options, limits, on_info=watch, control=control)
    return nearest_depth(found, seconds)


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
    seed: int = 0,
    kernels: Mapping[str, KernelSet] | None = None,
) -> Generator[Sample, None, None]:
    """Search every position with every policy and worker count, alternating within each repeat; yield the samples.

    Every position is searched to `depth`, or else to the depth that takes one worker about `seconds`; positions without
    such a depth are left out. Every search has its own history, drawn from `seed`. options: options of all searches,
    except for the policy; kernels: kernels of policies that need their own, by name.
    """
    counts = sorted({1, *threads})
    every = options or SearchOptions()
    serial, *chosen = (options_with(every, policy, kernels or {}) for policy in ("serial", *policies))
    ways = [(1, chosen[0]), *((count, how) for count in counts[1:] for how in chosen)]
    total = len(suite) * repeats * len(ways)
    left_out = done = 0
    engines: dict[tuple[int, KernelSet], Supervisor] = {}
    try:
        for count, how in [(1, serial), *ways]:
            if (count, how.kernels) not in engines:
                engines[count, how.kernels] = Supervisor(count, hash_mb, kernels=how.kernels)
        for number, position in enumerate(suite, start=1):
            board, fen = position.board, board_text(position.board)
            base = engines[1, serial.kernels]
            wanted = depth or _find_depth(base, board, seconds, serial, survey_seed(seed, fen))
            if wanted is None:
                total -= total // (len(suite) - left_out)
                left_out += 1
                continue
            for repeat in range(repeats):
                for count, how in ways:
                    history = sample_seed(seed, fen, how.policy, count, repeat)
                    result = _search(engines[count, how.kernels], board, history, how, Limits(depth=wanted))
                    info = result.info
                    sample = Sample(
                        position=position.name,
                        fen=fen,
                        depth=wanted,
                        policy=how.policy,
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
                        pruning=how.pruning_words if isinstance(board, chess.Board) else "",
                        history=history,
                    )
                    yield sample
                    done += 1
                    if progress:
                        what = f"{number}/{len(suite)} depth {wanted} repeat {repeat + 1}/{repeats}: {count} x "
                        progress(f"{what}{how.policy} {sample.seconds:.2f} s", done, total)
    finally:
        for engine in engines.values():
            engine.close()


def hardware_ceiling(
    suite: Sequence[SuitePosition | GameSuitePosition],
    count: int,
    hash_mb: int,
    seconds: float,
    rounds: int,
    options: SearchOptions,
    progress: StudyProgress | None = None,
) -> float | None:
    """Return the ceiling of the hardware: nodes per second of `count` independent searches, relative to one alone.

    Both alternate, each with an empty table; the result is the median ratio. No parallel search on this machine can be
    faster. Rounds in which a search ended before its time do not count; None if all did.
    """
    limits = Limits(movetime_ms=int(seconds * 1000))
    engines = [Supervisor(1, hash_mb, kernels=options.kernels) for _ in range(count)]
    threads = ThreadPoolExecutor(count)
    ratios = []

    def speed(engine: Supervisor, board: chess.Board | Subject) -> float:
        engine.forget()
        info = engine.search(SearchRequest(board, limits, options)).info
        return info.nodes / info.time_s if info.time_s >= _WHOLE * seconds else math.nan

    try:
        for number in range(rounds):
            boards = [suite[number % len(suite)].board] * count
            alone, together = (sum(threads.map(speed, group, boards)) for group in (engines[:1], engines))
            ratio = together / alone
            if not math.isnan(ratio):
                ratios.append(ratio)
            if progress:
                progress(f"ceiling {number + 1}/{rounds}: {ratio:.3f}", number + 1, rounds)
    finally:
        for engine in engines:
            engine.close()
        threads.shutdown(wait=False)
    return statistics.median(ratios) if ratios else None
