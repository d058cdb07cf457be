"""Small loops around single operations, for `calibrate.py`. Each returns time stamp counter cycles.

They run on a scratch arena that `calibrate.py` prepares, never on one that is searched. Everything they touch is in
the first-level cache, as it is when a worker opens or leaves the node it has just been in; but for the last three, of
lines that a second thread has just written.
"""

from __future__ import annotations

import numba
import numpy as np
from numba.core import types

from cost_kernels import LONG_SINCE, MICRO_COSTS, node_times_dtype
from psearch.scheduler.iterations import begin_root
from psearch.scheduler.splitting import acquire, best_offer, is_dead, leave, offer, open_node, release, unwind, withdraw
from psearch.scheduler.step import step
from psearch.scheduler.words import closed_of, done_of, idle_workers_of, mask_of, open_of, state_of
from psearch.scheduler.work import wait_between_polls
from psearch_core.constants import CLOSED_CUTOFF, STACK_ACTIVE, STATE_IDLE
from psearch_core.toolchain.intrinsics import (
    atomic_add,
    atomic_load,
    atomic_store,
    cycle_counter,
    pause,
    sched_yield,
    view,
)
from psearch_core.toolchain.jit import entry, kernel
from psearch_core.views import Context, boolean, context_at, frame_of, header_of, i64, stack_of, void, worker_of

_SPINS_BEFORE_YIELD = 10_000


@entry(void(i64), MICRO_COSTS)
def begin(context):
    """Have worker 0 begin the search that is set up."""
    wk = worker_of(context_at(context), 0)
    wk.state = begin_root(context_at(context), wk)


@entry(i64(i64, i64, i64, i64), MICRO_COSTS)
def time_locks(context, worker, home, rounds):
    """Lock and unlock a node."""
    ctx = context_at(context)
    wk = worker_of(ctx, worker)
    node = frame_of(ctx, home).node
    before = cycle_counter()
    for _ in range(rounds):
        acquire(ctx, wk, home)
        release(ctx, wk, node)
    return cycle_counter() - before


@entry(i64(i64, i64, i64), MICRO_COSTS)
def time_polls(context, worker, rounds):
    """Look for work where there is none, and pause before the next look as the process driver does."""
    ctx = context_at(context)
    wk = worker_of(ctx, worker)
    before = cycle_counter()
    for _ in range(rounds):
        if best_offer(ctx, wk) >= 0:
            return -1
        wait_between_polls(0)
    return cycle_counter() - before


@entry(i64(i64, i64, i64, i64), MICRO_COSTS)
def time_opens(context, worker, home, rounds):
    """Open a node, its lock included, and offer it."""
    ctx = context_at(context)
    wk = worker_of(ctx, worker)
    node = frame_of(ctx, home).node
    before = cycle_counter()
    for _ in range(rounds):
        open_node(ctx, wk, home)
        offer(ctx, home)
        release(ctx, wk, node)
    cycles = cycle_counter() - before
    acquire(ctx, wk, home)
    withdraw(ctx, home)
    atomic_store(open_of(node), 0)
    release(ctx, wk, node)
    return cycles


@entry(i64(i64, i64, i64, i64), MICRO_COSTS)
def time_leaves(context, worker, home, rounds):
    """Leave an open node that lies in the worker's own stack, a helper staying inside: lock, park, unlock."""
    ctx = context_at(context)
    wk = worker_of(ctx, worker)
    node = frame_of(ctx, home).node
    idle = idle_workers_of(header_of(ctx))
    stack = wk.stack
    state = state_of(stack_of(ctx, stack))
    atomic_store(open_of(node), 1)
    before = cycle_counter()
    for _ in range(rounds):
        node.inside = 2
        acquire(ctx, wk, home)
        leave(ctx, wk, home)
        wk.stack = stack
        atomic_store(state, STACK_ACTIVE)
    cycles = cycle_counter() - before
    atomic_store(open_of(node), 0)
    atomic_add(idle, -rounds)
    return cycles


@entry(i64(i64, i64, i64, i64), MICRO_COSTS)
def time_aborts(context, worker, plies, rounds):
    """Find that the node at ply 0 of the worker's stack was cut off, and unwind to it from `plies` above."""
    ctx = context_at(context)
    wk = worker_of(ctx, worker)
    node = frame_of(ctx, 0).node
    atomic_store(open_of(node), 1)
    atomic_store(closed_of(node), CLOSED_CUTOFF)
    dead = np.int64(0)
    before = cycle_counter()
    for _ in range(rounds):
        wk.ply = plies + 1
        if is_dead(ctx, 0):
            dead += 1
        for _ply in range(plies):
            unwind(ctx, wk)
    cycles = cycle_counter() - before
    atomic_store(open_of(node), 0)
    atomic_store(closed_of(node), 0)
    wk.ply = 0
    return cycles if dead == rounds else -1


# -- lines that another core has written: two threads take turns by a word, 0 for the one and 1 for the other ---------


@kernel(void(i64, i64))
def _wait_for_turn(word, own):
    """Spin; both threads may have one core between them, so give it up now and then."""
    spins = 0
    while atomic_load(word) != own:
        spins += 1
        if spins % _SPINS_BEFORE_YIELD == 0:
            sched_yield()


@entry(i64(i64, i64, i64, i64), MICRO_COSTS)
def time_transfers(word, own, blocks, rounds):
    """Pass the word to and fro, in each round twice: cycles of the quickest block of so many rounds, which nothing
    disturbed."""
    least = np.int64(1) << 62
    for _ in range(blocks):
        before = cycle_counter()
        for _round in range(rounds):
            _wait_for_turn(word, own)
            atomic_store(word, 1 - own)
        least = min(least, cycle_counter() - before)
    return least


@entry(i64(i64, i64, i64), MICRO_COSTS)
def write_offers(context, word, rounds):
    """Write, at its turn, 1, to the mask of every stack: nothing is offered."""
    ctx = context_at(context)
    for _ in range(rounds):
        _wait_for_turn(word, 1)
        for i in range(header_of(ctx).stack_count):
            atomic_store(mask_of(stack_of(ctx, i)), 0)
        atomic_store(word, 0)
    return 0


@entry(i64(i64, i64, i64, i64, i64), MICRO_COSTS)
def time_polls_of_written(context, worker, word, rounds, longest):
    """Look for work where there is none, each time after the other thread has written to all stacks.

    Returns the cycles of one look, the mean of those before which the other thread took no longer than `longest`, so
    was on another core; 0 if there were none.
    """
    ctx = context_at(context)
    wk = worker_of(ctx, worker)
    cycles = np.int64(0)
    looks = np.int64(0)
    for _ in range(rounds):
        asked = cycle_counter()
        atomic_store(word, 1)
        _wait_for_turn(word, 0)
        before = cycle_counter()
        if best_offer(ctx, wk) >= 0:
            return -1
        after = cycle_counter()
        if before - asked <= longest:
            cycles += after - before
            looks += 1
    return cycles // max(looks, np.int64(1))


# -- a worker of a search that other threads may share, which times its nodes ------------------------------------------

NodeTimes = numba.from_dtype(node_times_dtype)
assert isinstance(NodeTimes, types.Record)
node_times_at = view(NodeTimes)
_SIZE = node_times_dtype.itemsize
_BURST = 4096
"""Transitions; some thousand nodes, so that the caches are warm for most of them."""


@kernel(boolean(Context, i64, NodeTimes, i64, i64))
def _run(ctx, worker, found, longest, transitions):
    """Make this many transitions of a worker; return False when the search is done. The first node is not timed."""
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
