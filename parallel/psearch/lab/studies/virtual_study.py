"""The speedup study in virtual time: searches every position with every worker count, in one process or several.

Searches are deterministic, so the same arguments give the same samples in the same order with any number of jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

from psearch.arena.setup import board_text
from psearch.games.searching import GameSuitePosition
from psearch.lab.studies import StudyProgress
from psearch.lab.studies.tree_sizes import is_decided, nearest_depth, sample_seed, survey_seed
from psearch.options import SearchOptions, options_with
from psearch.processes.task_processes import share_out
from psearch.results import PsearchError
from psearch.simulation.costs import Costs
from psearch.simulation.simulator import Simulator, VirtualSample
from psearch.text.epd_text import SuitePosition
from psearch.trace.recorder import trace_capacity
from psearch_core.toolchain.kernel_sets import KernelSet

OnTrace = Callable[[Simulator, dict[str, Any]], None]
Share = Callable[[Callable[[], Callable[[Any], Any]], Sequence[Any]], Generator[tuple[int, Any], None, None]]
"""Distributes tasks, as `psearch.processes.task_processes.share_out` does."""


class StudyTask(NamedTuple):
    """Search of one position, given by its number; depth 0 means to find the depth instead."""

    workers: int
    policy: str
    number: int
    depth: int
    repeat: int = 0


@dataclass(frozen=True)
class Study:
    """Describes a study: every position by one serial worker, then by each count above one with each policy.

    All positions have the same `depth`, or each has the depth at which one worker has searched about `tree_nodes` nodes
    in a separate search (`tree_sizes`). Every search has its own history, drawn from `seed`.
    """

    suite: Sequence[SuitePosition | GameSuitePosition]
    depth: int | None
    workers: Sequence[int]
    policies: Sequence[str]
    costs: Costs
    seed: int = 0
    options: SearchOptions = field(default_factory=SearchOptions)
    """Options of every search, except for the policy."""
    hash_mb: int = 64
    validate: bool = False
    tree_nodes: int | None = None
    repeats: int = 1
    """Searches of each position with each policy and count."""
    kernels: Mapping[str, KernelSet] = field(default_factory=dict)
    """Kernels of files by policy, read once at the start: every process searches with these."""

    def tasks(self, depths: Sequence[int]) -> list[StudyTask]:
        """Return tasks in the order of the log, small counts first, without positions of depth 0."""
        counts = [count for count in sorted(set(self.workers)) if count > 1]
        pairs = [(1, "serial")] + [(count, policy) for count in counts for policy in self.policies]
        return [
            StudyTask(count, policy, number, depth, repeat)
            for count, policy in pairs
            for repeat in range(self.repeats)
            for number, depth in enumerate(depths)
            if depth > 0
        ]


class _TaskSearcher:
    """Runs tasks; keeps the arena while the worker count stays the same."""

    def __init__(self, study: Study, on_trace: OnTrace | None = None) -> None:
        self._study = study
        self._on_trace = on_trace
        self._simulator: Simulator | None = None

    def __call__(self, task: StudyTask) -> VirtualSample | int:
        """Return the sample of a search, or the depth found; 0 means to leave the position out."""
        study = self._study
        count, policy, number, depth, repeat = task
        traced = self._on_trace is not None and count == max(study.workers)
        if self._simulator is None or self._simulator.arena.workers != count:
            self.close()
            self._simulator = Simulator(count, study.hash_mb, study.costs, trace_capacity(count) if traced else 0)
        simulator, board = self._simulator, study.suite[number].board
        options = options_with(study.options, policy, study.kernels)
        fen = board_text(board)
        if depth == 0:
            assert study.tree_nodes is not None
            is_enough = partial(is_decided, wanted=study.tree_nodes)
            sizes = simulator.iterations(board, options, is_enough, survey_seed(study.seed, fen))
            return nearest_depth(sizes, study.tree_nodes) or 0
        history = sample_seed(study.seed, fen, policy, count, repeat)
        try:
            name, seed, validate = study.suite[number].name, study.seed, study.validate
            sample = simulator.search(name, board, depth, options, seed, validate, history=history)
            return replace(sample, repeat=repeat)
        finally:
            if self._on_trace is not None and simulator.recorder is not None:
                how = {"policy": policy, "driver": options.driver}
                self._on_trace(simulator, {"position": fen, **how, "depth": depth, "seed": study.seed})

    def close(self) -> None:
        # cleared first: after a Ctrl-C in the middle this is called again, and must not close it twice
        simulator, self._simulator = self._simulator, None
        if simulator is not None:
            simulator.close()


def run_study(
    study: Study,
    jobs: int,
    on_sample: Callable[[VirtualSample], None],
    progress: StudyProgress | None = None,
    on_trace: OnTrace | None = None,
    share: Share | None = None,
) -> None:
    """Run all searches; `on_sample` takes each one in the order of `Study.tasks`, and on Ctrl-C all finished ones.

    jobs: processes that run the searches; share: distributes them in another way. on_trace: takes the recording of each
    search with the most workers, also if it was interrupted, with facts about it; needs one job. Raises PsearchError if
    an invariant is violated or all positions are too quick, WorkerDied if a process dies.
    """
    depths = find_depths(study, jobs, progress, share)
    if not any(depths):
        raise PsearchError(f"no position takes one worker about {study.tree_nodes:,} nodes at any depth")
    tasks = study.tasks(depths)
    early: dict[int, VirtualSample] = {}
    delivered = 0
    try:
        with closing(_perform(study, tasks, jobs, on_trace, share)) as finished:
            for place, sample in finished:
                assert isinstance(sample, VirtualSample)
                early[place] = sample
                while delivered in early:
                    on_sample(early[delivered])
                    done = early.pop(delivered)
                    delivered += 1
                    if progress:
                        what = f"{delivered}/{len(tasks)} {done.threads} x {done.policy}: {done.position}"
                        progress(what, delivered, len(tasks))
    finally:
        for place in sorted(early):
            on_sample(early[place])


def find_depths(
    study: Study, jobs: int = 1, progress: StudyProgress | None = None, share: Share | None = None
) -> list[int]:
    """Return the depth to search for each position; 0 means to leave it out."""
    if study.depth is not None:
        return [study.depth] * len(study.suite)
    depths = [0] * len(study.suite)
    surveys = [StudyTask(1, "serial", number, 0) for number in range(len(depths))]
    with closing(_perform(study, surveys, jobs, share=share)) as finished:
        for done, (number, depth) in enumerate(finished, start=1):
            assert isinstance(depth, int)
            depths[number] = depth
            if progress:
                found = f"depth {depth} for" if depth else "left out, solved before that size:"
                progress(f"{found} {study.suite[number].name} ({done}/{len(depths)})")
    return depths


def _perform(
    study: Study, tasks: Sequence[StudyTask], jobs: int, on_trace: OnTrace | None = None, share: Share | None = None
) -> Generator[tuple[int, VirtualSample | int], None, None]:
    """Return the place of each task in the list and its result, in the order in which they finish."""
    make = partial(_TaskSearcher, study)
    if share is not None:
        return share(make, tasks)
    # a user's kernels may crash or hang, so they run in another process
    if jobs > 1 or (study.kernels and on_trace is None):
        return share_out(make, tasks, jobs)
    return do_here(partial(make, on_trace), tasks)


def do_here(make: Callable[[], Any], tasks: Sequence[Any]) -> Generator[tuple[int, Any], None, None]:
    """Do tasks in this process, even with a user's kernels; a `Share`."""
    with closing(make()) as searcher:
        yield from enumerate(map(searcher, tasks))
