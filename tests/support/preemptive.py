"""Searches of an artificial tree in which workers lose the processor between any two steps that others can see.

Workers are coroutines: in place of `preemption_point` one loses the processor to another, at random from a seed. Each
has a machine stack and changes place with another by libc's `swapcontext`, in the midst of a step if need be. So
several of them in one thread are in the protocol at once, in an order that is the same on every run. Every now and then
all finish the step they are at, and `violations` looks at the arena.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, replace
from random import Random

import numba
import numpy as np
from artificial_tree import REPLACED, Serial, Shape, root_of, set_up
from numba.core import types

from psearch.arena.arena import Arena
from psearch.arena.validate import leftovers, violations
from psearch.options import SearchOptions
from psearch.scheduler.splitting import stop_all
from psearch.scheduler.step import step
from psearch.scheduler.words import done_of
from psearch_core.arithmetic import SPLITMIX_STEP, splitmix64
from psearch_core.constants import STATE_IDLE
from psearch_core.toolchain.groups import Group
from psearch_core.toolchain.intrinsics import atomic_load, view
from psearch_core.toolchain.jit import entry, kernel
from psearch_core.views import Context, boolean, context_at, header_of, i64, void, worker_of

MOST = 8
_LONG_STOPS = 4
"""One in so many stops is long,"""
_LONGEST_STOP = 300
"""up to so many points."""

switching_dtype = np.dtype(
    [
        ("workers", "i8"),
        ("current", "i8"),  # worker that has the processor
        ("random", "u8"),
        ("patience", "i8"),  # at one in so many points the processor changes hands
        ("left", "i8"),  # points that may still be passed before the caller gets the processor back
        ("draining", "i8"),  # 1: who has finished a step rests until all have
        ("outside", "i8"),  # 1: the caller has the processor
        ("caller", "i8"),  # addresses of `ucontext_t`
        ("contexts", "i8", (MOST,)),
        ("resting", "i8", (MOST,)),
        ("passed", "i8"),  # points, by all
        ("wakes", "i8", (MOST,)),  # how many points must have been passed before the worker may go on
    ],
    align=True,
)
Switching = numba.from_dtype(switching_dtype)
switching_at = view(Switching)

swapcontext = types.ExternalFunction("swapcontext", types.int32(types.int64, types.int64))


@kernel(i64(Switching))
def _draw(sw):
    sw.random += SPLITMIX_STEP
    return np.int64(splitmix64(sw.random) >> np.uint64(1))


@kernel(boolean(Switching, i64, boolean))
def _may_run(sw, worker, awake_only):
    return sw.resting[worker] == 0 and (not awake_only or sw.wakes[worker] <= sw.passed)


@kernel(i64(Switching, boolean))
def _drawn_worker(sw, awake_only):
    """One of those that do not rest, -1 if all do."""
    count = 0
    for worker in range(sw.workers):
        count += 1 if _may_run(sw, worker, awake_only) else 0
    if count == 0:
        return -1
    number = _draw(sw) % count
    for worker in range(sw.workers):
        if _may_run(sw, worker, awake_only):
            if number == 0:
                return worker
            number -= 1
    return -1


@kernel(void(Switching))
def _leave_to_caller(sw):
    sw.outside = 1
    swapcontext(sw.contexts[sw.current], sw.caller)


@kernel(void(Context))
def switch_worker(ctx):
    """In place of `preemption_point`."""
    sw = switching_at(ctx.plug_in)
    if sw.outside:
        return
    if sw.left == 0:
        _leave_to_caller(sw)
        return
    sw.left -= 1
    sw.passed += 1
    if not sw.resting[sw.current] and _draw(sw) % sw.patience != 0:
        return
    if _draw(sw) % _LONG_STOPS == 0:
        sw.wakes[sw.current] = sw.passed + _draw(sw) % _LONGEST_STOP
    chosen = _drawn_worker(sw, True)
    if chosen < 0:
        chosen = _drawn_worker(sw, False)
    if chosen < 0:
        _leave_to_caller(sw)
    elif chosen != sw.current:
        before = sw.current
        sw.current = chosen
        swapcontext(sw.contexts[before], sw.contexts[chosen])


@kernel(boolean(Context, i64))
def _has_ended(ctx, worker):
    return atomic_load(done_of(header_of(ctx))) != 0 and worker_of(ctx, worker).state == STATE_IDLE


@entry(i64(i64, i64))
def run_worker(context, worker):
    """Run a worker in a coroutine; never returns."""
    ctx = context_at(context)
    sw = switching_at(ctx.plug_in)
    while sw.workers > 0:
        step(ctx, worker, 1)
        if sw.draining or _has_ended(ctx, worker):
            sw.resting[worker] = 1
        switch_worker(ctx)
    return 0


@entry(void(i64, i64))
def resume(context, points):
    """Let the workers run until all rest, or past so many points."""
    sw = switching_at(context_at(context).plug_in)
    sw.left = points
    sw.outside = 0
    swapcontext(sw.caller, sw.contexts[sw.current])


@entry(void(i64))
def stop_now(context):
    stop_all(context_at(context))


_SWITCHES = {"psearch.scheduler.splitting.preemption_point": "preemptive.switch_worker"}
_STACK_BYTES = 1 << 18
_CONTEXT_BYTES = 1 << 13
_FIELDS = 16
"""Offset in glibc's `ucontext_t` of the address of the machine stack; its size stands 16 bytes further."""
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
    """The worker loses the processor at one in this many points."""
    drain: int
    """Number of points until all workers rest for a look."""
    stop_after: int
    """Number of looks until the search is stopped; 0: it never is."""
    roots: int = 1
    driver: str = "pvs"

    @property
    def is_perfect(self) -> bool:
        """Nothing is opened that is cut off, and one window is searched, so no node is searched in vain."""
        return not self.shape.disorder and self.driver == "pvs"


def case_of(seed: int) -> Case:
    dice = Random(seed)
    how = dice.choice((2, 8, 30)), dice.choice((10, 40, 160)), dice.choice((0, 0, 5, 30))
    if dice.randrange(4) == 0:
        return Case(seed, Shape(4, 4, seed), dice.choice(("knuth", "garms", "kannan")), *how[:2], 0)
    rough = Shape(6, 3, seed, 2, True), Shape(4, 4, seed, 1, True), Shape(3, 5, seed, 1, True, reduce=True, null=True)
    return Case(seed, dice.choice(rough), dice.choice(("ybw", "ybw", "garms", "kannan")), *how, dice.choice((1, 1, 2)))


def group_of(name: str, replaced: dict[str, str]) -> Group:
    """A group for `Preemptive`, with other versions of some kernels of the scheduler."""
    return Group(name, "preemptive", replaced={**REPLACED, **_SWITCHES, **replaced})


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
        """Return what is wrong with one search; empty if nothing is."""
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
        self.arena.forget()
        options = replace(SearchOptions.plain(case.policy, split_depth=1), roots=case.roots, driver=case.driver)
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
        return int(self.arena.worker["counters"][counter].sum())

    def close(self) -> None:
        self.arena.close()


def hunt(group: Group, seeds: range, driver: str = "pvs") -> str:
    """Return what is wrong in the first of many searches that finds a mistake; empty if none does."""
    machines = [Preemptive(group, 2), Preemptive(group, 3), Preemptive(group, 4, stacks=5)]
    joins = failed = aborts = 0
    for seed in seeds:
        machine = machines[seed % len(machines)]
        case = replace(case_of(seed), driver=driver)
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
