"""The speedup study in virtual time: every position with every worker count, in one process or several.

All searches are deterministic, so it does not matter where they run: the same arguments give the same samples in the
same order with any number of jobs.
"""

from __future__ import annotations

import math
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple

import multiprocess
import numpy as np

from psearch.arena.setup import SearchOptions
from psearch.notation.epd import SuitePosition
from psearch.processes.supervisor import safe_start_method
from psearch.results import PsearchError, WorkerDied
from psearch.simulation.costs import Costs
from psearch.simulation.simulator import Simulator, VirtualSample
from psearch.studies.speedup import Row
from psearch.terminal.display import time_left
from psearch.trace.recorder import Recorder, trace_capacity

Progress = Callable[[str], None]
OnTrace = Callable[[Recorder, dict[str, Any]], None]

_BASE_POLICY = "serial"
_PARENT_CHECK_S = 1.0


class Task(NamedTuple):
    """A search: workers, policy, number of the position, depth. Depth 0: find the depth instead."""

    workers: int
    policy: str
    number: int
    depth: int


@dataclass(frozen=True)
class Study:
    """What to search: every position by one serial worker, then by each count above one with each policy.

    Either all to the same `depth`, or each to the depth that one worker finishes within `tree_nodes` nodes.
    """

    suite: Sequence[SuitePosition]
    depth: int | None
    workers: Sequence[int]
    policies: Sequence[str]
    costs: Costs
    seed: int = 0
    options: SearchOptions = field(default_factory=SearchOptions)
    """with every policy"""
    hash_mb: int = 64
    validate: bool = False
    tree_nodes: int | None = None

    def surveys(self) -> list[Task]:
        """To find the depth of each position."""
        return [Task(1, _BASE_POLICY, number, 0) for number in range(len(self.suite))]

    def tasks(self, depths: Sequence[int]) -> list[Task]:
        """In the order of the log, small counts first; positions of depth 0 are left out."""
        counts = [count for count in sorted(set(self.workers)) if count > 1]
        pairs = [(1, _BASE_POLICY)] + [(count, policy) for count in counts for policy in self.policies]
        return [
            Task(count, policy, number, depth)
            for count, policy in pairs
            for number, depth in enumerate(depths)
            if depth > 0
        ]


class _Desk:
    """Searches task after task; keeps the arena as long as the worker count stays the same."""

    def __init__(self, study: Study, watch: Callable[[], None] | None = None, on_trace: OnTrace | None = None) -> None:
        self._study = study
        self._watch = watch
        self._on_trace = on_trace
        self._simulator: Simulator | None = None

    def search(self, task: Task) -> VirtualSample | int:
        """The search, or the depth if that is to be found."""
        study = self._study
        count, policy, number, depth = task
        traced = self._on_trace is not None and count == max(study.workers)
        if self._simulator is None or self._simulator.arena.workers != count:
            self.close()
            self._simulator = Simulator(count, study.hash_mb, study.costs, trace_capacity(count) if traced else 0)
        position = study.suite[number]
        options = replace(study.options, policy=policy)
        if depth == 0:
            assert study.tree_nodes is not None
            return self._simulator.depth_within(position.board, study.tree_nodes, options, self._watch)
        try:
            return self._simulator.search(
                position.name, position.board, depth, options, study.seed, study.validate, self._watch
            )
        finally:
            if self._on_trace is not None and self._simulator.recorder is not None:
                facts = {"position": position.board.fen(), "policy": policy, "depth": depth, "seed": study.seed}
                self._on_trace(self._simulator.recorder, facts)

    def close(self) -> None:
        if self._simulator is not None:
            self._simulator.close()
            self._simulator = None


def run_study(
    study: Study,
    jobs: int,
    on_sample: Callable[[VirtualSample], None],
    progress: Progress | None = None,
    on_trace: OnTrace | None = None,
) -> None:
    """Search everything; `on_sample` gets each search, in the order of `Study.tasks`.

    `on_trace` gets the recording of each search with most workers, and facts about it, also when it did not get to its
    end; only with one job.

    With `jobs` above one that many processes share the work; on an interrupt `on_sample` still gets all that is
    finished. Raises PsearchError when an invariant is violated or all positions are too quick, WorkerDied when a
    process ends.
    """
    depths = _find_depths(study, jobs, progress)
    if not any(depths):
        raise PsearchError(f"no position takes one worker {study.tree_nodes:,} nodes at any depth")
    tasks = study.tasks(depths)
    clock = _Clock(tasks)
    early: dict[int, VirtualSample] = {}
    delivered = 0
    try:
        for place, sample in _perform(study, tasks, jobs, on_trace):
            assert isinstance(sample, VirtualSample)
            early[place] = sample
            while delivered in early:
                on_sample(early[delivered])
                done = early.pop(delivered)
                delivered += 1
                if progress:
                    progress(clock.line(delivered - 1, done))
    finally:
        for place in sorted(early):
            on_sample(early[place])


def _find_depths(study: Study, jobs: int, progress: Progress | None) -> list[int]:
    """To search each position to; 0: leave it out."""
    if study.depth is not None:
        return [study.depth] * len(study.suite)
    depths = [0] * len(study.suite)
    for done, (number, depth) in enumerate(_perform(study, study.surveys(), jobs)):
        assert isinstance(depth, int)
        depths[number] = depth
        if progress:
            progress(f"depth {depth} for {study.suite[number].name} ({done + 1}/{len(depths)})")
    return depths


def _perform(
    study: Study, tasks: Sequence[Task], jobs: int, on_trace: OnTrace | None = None
) -> Iterator[tuple[int, VirtualSample | int]]:
    """Every task's place in the list and its result, in the order they finish."""
    if jobs > 1:
        yield from _shared_out(study, tasks, jobs)
        return
    desk = _Desk(study, on_trace=on_trace)
    try:
        for place, task in enumerate(tasks):
            yield place, desk.search(task)
    finally:
        desk.close()


class _Clock:
    """Tells how long the study will take: a search costs about its nodes, and those of one worker are known first."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._tasks = tasks
        self._alone = sum(task.workers == 1 for task in tasks)
        self._start = time.monotonic()
        self._weights: dict[int, int] = {}
        self._done = 0

    def line(self, place: int, sample: VirtualSample) -> str:
        """After the search of the task at this place of the list."""
        text = f"{place + 1}/{len(self._tasks)} {sample.threads} x {sample.policy}: {sample.position}"
        task = self._tasks[place]
        self._weights.setdefault(task.number, sample.nodes)
        self._done += self._weights[task.number]
        if place + 1 < self._alone:
            return text
        total = sum(self._weights.values()) * (len(self._tasks) // self._alone)
        return text + time_left(self._start, self._done / total)


# -- several processes -----------------------------------------------------------------------------------------------


def _job(study: Study, pipe: Connection, inherited: list[Connection], parent: int) -> None:
    """A process that searches the tasks it is sent, until told to stop or left alone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all; the parent decides
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for connection in inherited:
        connection.close()
    from psearch.kernels import load_kernels

    load_kernels()

    def check_parent() -> None:
        if os.getppid() != parent:
            os._exit(1)

    desk = _Desk(study, check_parent)
    try:
        while True:
            while not pipe.poll(_PARENT_CHECK_S):
                check_parent()
            task = pipe.recv()
            try:
                pipe.send(desk.search(task))
            except PsearchError as error:
                pipe.send(error)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return


def _shared_out(study: Study, tasks: Sequence[Task], jobs: int) -> Iterator[tuple[int, VirtualSample | int]]:
    """`_perform` in several processes."""
    context = multiprocess.get_context(safe_start_method())
    forking = context.get_start_method() == "fork"
    pipes: list[Connection] = []
    processes: list[Any] = []
    busy: dict[Connection, int] = {}
    todo = iter(range(len(tasks)))
    try:
        for _ in range(min(jobs, len(tasks))):
            ours, theirs = context.Pipe()
            pipes.append(ours)
            arguments = (study, theirs, list(pipes) if forking else [], os.getpid())
            process = context.Process(target=_job, args=arguments, daemon=True)
            process.start()
            theirs.close()
            processes.append(process)
        for pipe, number in zip(pipes, todo, strict=False):
            pipe.send(tasks[number])
            busy[pipe] = number
        while busy:
            for ready in wait(list(busy)):
                pipe = ready  # type: ignore[assignment]  # wait gives back what it was given
                sample = _receive(pipe)
                number = busy.pop(pipe)
                following = next(todo, None)
                if following is not None:
                    pipe.send(tasks[following])
                    busy[pipe] = following
                yield number, sample
    finally:
        for process in processes:
            process.kill()
        for process in processes:
            process.join()
        for pipe in pipes:
            pipe.close()


def _receive(pipe: Connection) -> VirtualSample | int:
    try:
        answer = pipe.recv()
    except (EOFError, OSError):
        raise WorkerDied("a process of the simulation ended; the study was stopped") from None
    if isinstance(answer, PsearchError):
        raise answer
    assert isinstance(answer, VirtualSample | int)
    return answer


# -- what the figures say --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fit:
    """T(P) / T(1) = c + w / P for one policy: the critical path and the work, in units of the serial time."""

    policy: str
    c: float
    w: float
    error: float
    """root mean square of the relative errors"""


def fit_times(rows: Sequence[Row]) -> list[Fit]:
    """A fit per policy that has two worker counts or more above one, by least squares of the relative errors.

    The times are reciprocals of geometric mean speedups, with 1 at one worker. c and w are not negative.
    """
    fits = []
    for policy in dict.fromkeys(row.policy for row in rows):
        points = [(1, 1.0)] + [(row.threads, 1 / row.speedup) for row in rows if row.policy == policy]
        if len(points) < 3:
            continue
        count, times = np.array(points).T
        terms = np.stack([np.ones_like(count), 1 / count], axis=1) / times[:, None]
        c, w = non_negative_pair(terms, np.ones_like(times))
        relative = terms @ np.array([c, w]) - 1
        fits.append(Fit(policy, c, w, math.sqrt(float(np.mean(relative**2)))))
    return fits


def non_negative_pair(terms: np.ndarray, wanted: np.ndarray) -> tuple[float, float]:
    """Least squares with two unknowns, neither below zero."""
    both = np.linalg.lstsq(terms, wanted, rcond=None)[0]
    if both.min() >= 0:
        return float(both[0]), float(both[1])
    best = (0.0, 0.0)
    least = float(wanted @ wanted)
    for column in range(2):
        only = max(float(terms[:, column] @ wanted / (terms[:, column] @ terms[:, column])), 0.0)
        rest = wanted - only * terms[:, column]
        if float(rest @ rest) < least:
            least = float(rest @ rest)
            best = (only, 0.0) if column == 0 else (0.0, only)
    return best


def fit_lines(fits: Sequence[Fit]) -> str:
    """The fits as text."""
    lines = []
    for fit in fits:
        most = f"at most {1 / fit.c:,.0f}" if fit.c > 0 else "no limit in sight"
        lines.append(f"{fit.policy:<11}T(P)/T(1) = {fit.c:.5f} + {fit.w:.3f}/P  (error {fit.error:.1%}; {most})")
    return "\n".join(lines)
