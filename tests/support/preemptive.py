"""Searches of an artificial tree in which workers lose the processor between any two steps that others can see.

Each run is random from a seed. Every now and then all finish the step they are at, and `violations` looks at the arena.
"""

from __future__ import annotations

import ctypes
import random
from dataclasses import dataclass, replace

import numpy as np
from artificial_tree import REPLACED, Serial, Shape, root_of, set_up
from preemptive_kernels import MOST, switching_dtype

from psearch.arena.arena import Arena
from psearch.arena.validate import leftovers, violations
from psearch.options import SearchOptions
from psearch_core.toolchain.groups import Group

_SWITCHES = {"psearch.scheduler.splitting.preemption_point": "preemptive_kernels.switch_worker"}
_STACK_BYTES = 1 << 18
_CONTEXT_BYTES = 1 << 13
_FIELDS = 16
"""Where in a `ucontext_t` of glibc the place and, 16 bytes on, the size of the machine stack stand."""
_HANG = 60_000
"""Points; a search passes some thousands."""
_MOST_FAILED = 4
"""Joins that fail, for each that does not: an offer that has run out of moves is withdrawn when one worker sees it."""


@dataclass(frozen=True)
class Case:
    """A search, and the order of its steps."""

    seed: int
    shape: Shape
    policy: str
    patience: int
    """at one in so many points the worker loses the processor"""
    drain: int
    """points until all rest for a look"""
    stop_after: int
    """so many looks until the search is stopped; 0 never"""
    roots: int = 1

    @property
    def is_perfect(self) -> bool:
        """Nothing is opened that is cut off, so no node is searched in vain."""
        return not self.shape.disorder


def case_of(seed: int) -> Case:
    dice = random.Random(seed)
    how = dice.choice((2, 8, 30)), dice.choice((10, 40, 160)), dice.choice((0, 0, 5, 30))
    if dice.randrange(4) == 0:
        return Case(seed, Shape(4, 4, seed), dice.choice(("knuth", "garms", "kannan")), *how[:2], 0)
    rough = Shape(6, 3, seed, 2, True), Shape(4, 4, seed, 1, True), Shape(3, 5, seed, 1, True, reduce=True, null=True)
    return Case(seed, dice.choice(rough), dice.choice(("ybw", "ybw", "garms", "kannan")), *how, dice.choice((1, 1, 2)))


def group_of(name: str, replaced: dict[str, str]) -> Group:
    """A group for `Preemptive`, with other versions of some kernels of the scheduler."""
    return Group(name, "preemptive_kernels", replaced={**REPLACED, **_SWITCHES, **replaced})


class Preemptive:
    """An arena whose workers are coroutines of this thread."""

    def __init__(self, group: Group, workers: int, stacks: int | None = None) -> None:
        self.arena = Arena(workers, 1, stacks=stacks)
        self._libc = ctypes.CDLL(None)
        self._resume, self._stop = group.entry("resume"), group.entry("stop_now")
        self._worker = ctypes.cast(group.function("run_worker"), ctypes.c_void_p)
        self._switching = np.zeros(1, switching_dtype)
        self._contexts = np.zeros((MOST + 1, _CONTEXT_BYTES // 8), np.int64)
        self._stacks = np.zeros((MOST, _STACK_BYTES), np.uint8)

    def search(self, case: Case) -> str:
        """What is wrong with one search; empty if nothing is."""
        self._begin(case)
        self.was_stopped = False
        points = looks = nodes = 0
        switching = self._switching[0]
        while not switching["resting"][: self.arena.workers].all() or not self.arena.header[0]["done"]:
            switching["resting"] = switching["draining"] = 0
            for draining, most in ((0, case.drain), (1, _HANG)):
                switching["draining"] = draining
                self._resume(self.arena.context, most)
                points += most - int(switching["left"])
            if points > _HANG:
                return "hang"
            if found := violations(self.arena):
                return found[0]
            looks += 1
            if looks == case.stop_after:
                self._stop(self.arena.context)
                self.was_stopped = True
                nodes = int(self.arena.worker["nodes"].sum())
        if self.was_stopped:
            late = int(self.arena.worker["nodes"].sum()) - nodes
            if late:
                return f"{late} nodes after the stop"
            return next(iter(leftovers(self.arena)), "")
        return self._problem_of_end(case)

    def _begin(self, case: Case) -> None:
        self.arena.clear_table()
        self.arena.clear_learning()
        options = replace(SearchOptions.plain(case.policy, split_depth=1), roots=case.roots)
        set_up(self.arena, case.shape, options)
        switching = self._switching[0]
        switching["workers"], switching["random"], switching["outside"] = self.arena.workers, case.seed, 1
        switching["current"], switching["patience"] = 0, case.patience
        switching["wakes"] = switching["passed"] = 0
        addresses = [self._contexts[number].ctypes.data for number in range(MOST + 1)]
        switching["contexts"], switching["caller"] = addresses[:MOST], addresses[MOST]
        self.arena.use_memory(self._switching)
        for worker in range(self.arena.workers):
            place = ctypes.c_void_p(addresses[worker])
            self._libc.getcontext(place)
            fields = self._contexts[worker][_FIELDS // 8 :]
            fields[0], fields[2] = self._stacks[worker].ctypes.data, _STACK_BYTES
            arguments = ctypes.c_int64(self.arena.context), ctypes.c_int64(worker)
            self._libc.makecontext(place, self._worker, 2, *arguments)

    def _problem_of_end(self, case: Case) -> str:
        left = leftovers(self.arena)
        if left:
            return left[0]
        if self.total("parks") != self.total("adopts"):
            return "not every parked stack was adopted"
        score = int(self.arena.header[0]["score"])
        expected = root_of(case.shape).value
        if score != expected:
            return f"score {score} instead of {expected}"
        nodes = int(self.arena.worker["nodes"].sum())
        if case.is_perfect and nodes != (least := Serial(case.shape).nodes):
            return f"{nodes} nodes instead of {least}"
        return ""

    def total(self, counter: str) -> int:
        """Of all workers."""
        return int(self.arena.worker["counters"][counter].sum())

    def close(self) -> None:
        self.arena.close()


def hunt(group: Group, seeds: range) -> str:
    """What is wrong in the first of many searches in which something is; empty if nothing is."""
    machines = [Preemptive(group, 2), Preemptive(group, 3), Preemptive(group, 4, stacks=5)]
    joins = failed = aborts = 0
    for seed in seeds:
        machine = machines[seed % len(machines)]
        case = case_of(seed)
        problem = machine.search(case)
        if problem:
            return f"seed {seed}: {problem}"
        joins += machine.total("joins")
        failed += machine.total("failed_joins")
        # the end of the main root stops the others: no cutoff has aborted these
        aborts += 0 if machine.was_stopped or case.roots > 1 else machine.total("aborts")
    for machine in machines:
        machine.close()
    if failed > _MOST_FAILED * joins:
        return f"{failed} joins failed, {joins} did not"
    return "" if aborts * 4 > len(seeds) < joins else f"{joins} joins and {aborts} aborts in {len(seeds)} searches"
