"""A driver for tests: several workers in one process, interleaved at random from a seed.

The same compiled `step` as in real processes, and the same on every run. A worker holds no lock between steps, so a
single thread cannot deadlock on one.
"""

from __future__ import annotations

import numpy as np
from round_robin_entries import ROUND_ROBIN

from psearch.scheduler.step import step
from psearch.scheduler.words import done_of
from psearch_core.arithmetic import SPLITMIX_STEP, splitmix64
from psearch_core.toolchain.intrinsics import atomic_load
from psearch_core.toolchain.jit import entry
from psearch_core.views import context_at, header_of, i64


@entry(i64(i64, i64, i64, i64), ROUND_ROBIN)
def run_interleaved(context, seed, max_burst, max_turns):
    """Give random workers bursts of 1 .. max_burst transitions until the search is done.

    Returns the turns taken, or -1 if `max_turns` were not enough (a hang, in tests).
    """
    ctx = context_at(context)
    hd = header_of(ctx)
    state = np.uint64(seed)
    for turn in range(max_turns):
        if atomic_load(done_of(hd)) != 0:
            return turn
        state += SPLITMIX_STEP
        draw = np.int64(splitmix64(state) >> np.uint64(1))
        worker = draw % hd.worker_count
        burst = 1 + (draw >> 20) % max_burst
        step(ctx, worker, burst)
    return -1 if atomic_load(done_of(hd)) == 0 else max_turns


@entry(i64(i64, i64, i64), ROUND_ROBIN)
def step_worker(context, worker, budget):
    """Run `step` for Python drivers; context: address of this process's context record."""
    return step(context_at(context), worker, budget)
