"""A worker of a search that other threads may share, which times its nodes: for `calibrate.py`."""

from __future__ import annotations

import numba
import numpy as np
from numba.core import types

from cost_kernels.cost_entries import MICRO_COSTS
from cost_kernels.timings import LONG_SINCE, node_times_dtype
from psearch.scheduler.step import step
from psearch.scheduler.words import done_of
from psearch_core.constants import STATE_IDLE
from psearch_core.toolchain.intrinsics import atomic_load, cycle_counter, pause, view
from psearch_core.toolchain.jit import entry, kernel
from psearch_core.views import Context, boolean, context_at, header_of, i64, worker_of

NodeTimes = numba.from_dtype(node_times_dtype)
assert isinstance(NodeTimes, types.Record)
node_times_at = view(NodeTimes)
_SIZE = node_times_dtype.itemsize
_BURST = 4096
"""Transitions; some thousand nodes, so that the caches are warm for most of them."""


@kernel(boolean(Context, i64, NodeTimes, i64, i64))
def _run(ctx, worker, found, longest, transitions):
    """So many transitions of a worker; False when the search is done. The first node is not timed."""
    hd = header_of(ctx)
    wk = worker_of(ctx, worker)
    last = np.int64(0)
    kind = np.int64(0)
    for _ in range(transitions):
        if wk.state == STATE_IDLE and atomic_load(done_of(hd)) != 0:
            return False
        nodes, qnodes, joins = wk.nodes, wk.counters.qnodes, wk.counters.joins
        idle = step(ctx, worker, 1) > 0
        if idle:
            for _pause in range(16):
                pause()
        if wk.counters.joins != joins:
            found.since = 0
        if idle or wk.state == STATE_IDLE or wk.counters.joins != joins:
            last = 0
        if wk.nodes == nodes:
            continue
        now = cycle_counter()
        if last != 0:
            if now - last <= longest:
                found.count[found.since, kind] += 1
                found.cycles[found.since, kind] += now - last
            else:
                found.disturbed += 1
            found.since = min(found.since + 1, np.int64(LONG_SINCE))
        last = now
        kind = 1 if wk.counters.qnodes != qnodes else 0
    return True


@entry(i64(i64, i64, i64, i64), MICRO_COSTS)
def search_timing_nodes(context, worker, times, longest):
    """Run a worker to the end of a search that others may share, in threads of theirs.

    times: address of its `node_times_dtype`; longest: cycles; what takes longer was disturbed, and is only counted.
    """
    ctx = context_at(context)
    while _run(ctx, worker, node_times_at(times), longest, 1 << 30):
        continue
    return 0


@entry(i64(i64, i64, i64), MICRO_COSTS)
def search_in_turns_timing_nodes(context, times, longest):
    """Search with all workers of the arena, in turns and on one core: times: address of the first of theirs."""
    ctx = context_at(context)
    worker = np.int64(0)
    while _run(ctx, worker, node_times_at(times + worker * _SIZE), longest, _BURST):
        worker = (worker + 1) % header_of(ctx).worker_count
    return 0
