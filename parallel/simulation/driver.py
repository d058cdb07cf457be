"""The virtual-time driver: up to 1,024 workers in one process, in the order of their virtual clocks.

The worker with the smallest clock runs the compiled `step` until it has entered one node (or has nothing to do); then
its clock advances by the cost of what it did. Costs are integers, measured on a real machine (`psearch calibrate`), so
the same position, depth, workers, policy, costs and seed give the same node counts to the last digit.

What is modelled: the time of nodes, joins, leaves, opens and polls; waiting for a node's lock (it is held for
`costs.lock` by one worker after another); the delay until an idle worker sees a new offer. What is not: caches and
memory bandwidth shared by workers, and the scheduler of the operating system.

A search in virtual time ends like a real one: at its depth, at its number of nodes, or when time is up, which every
worker notices within one node.

A worker that finds nothing falls asleep instead of polling for ever: polls cost real time, and their outcome cannot
change before a node is opened. Each opened node wakes one sleeper, each successful join two more.
"""

from __future__ import annotations

import numpy as np

from psearch.core.constants import STATE_IDLE
from psearch.core.intrinsics import atomic_load, atomic_store, check, copy_record
from psearch.core.jit import entry, kernel
from psearch.core.records import MAX_WORKERS, WORKER_BITS
from psearch.core.splitmix import SPLITMIX_STEP, splitmix64
from psearch.core.views import (
    Context,
    Counters,
    Simulation,
    Worker,
    context_at,
    header_of,
    i64,
    simulation_at,
    void,
    worker_of,
)
from psearch.scheduler.splitting import stop_all
from psearch.scheduler.step import step
from psearch.scheduler.trace_log import begin_turn, settle_turn
from psearch.scheduler.words import done_of, stop_of
from psearch.simulation.entries import VIRTUAL

_MOST_TRANSITIONS = 256
"""Of one turn without a node: unwinding a deep stack takes one each."""
_CLOCK_BITS = 63 - WORKER_BITS
"""Of a clock in the heap: two and a half hours."""


@kernel(void(Simulation, i64, i64))
def _push(sim, clock, worker):
    """Put a worker into the heap."""
    since = clock - sim.base
    check(0 <= worker < MAX_WORKERS and 0 <= since < 1 << _CLOCK_BITS, "an item of the heap fits into a word")
    item = (since << WORKER_BITS) | worker
    i = sim.heap_size
    sim.heap_size += 1
    while i > 0 and sim.heap[(i - 1) >> 1] > item:
        sim.heap[i] = sim.heap[(i - 1) >> 1]
        i = (i - 1) >> 1
    sim.heap[i] = item


@kernel(i64(Simulation))
def _pop(sim):
    """Take out the smallest clock and its worker."""
    top = sim.heap[0]
    sim.heap_size -= 1
    size = sim.heap_size
    item = sim.heap[size]
    i = 0
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        if child + 1 < size and sim.heap[child + 1] < sim.heap[child]:
            child += 1
        if sim.heap[child] >= item:
            break
        sim.heap[i] = sim.heap[child]
        i = child
    sim.heap[i] = item
    return top


@kernel(void(Simulation))
def _move_base(sim):
    """Let the clocks in the heap count from now: none is earlier."""
    passed = (sim.now - sim.base) << WORKER_BITS
    for i in range(sim.heap_size):
        sim.heap[i] -= passed
    sim.base = sim.now


@kernel(i64(Simulation, i64))
def _jittered(sim, cost):
    """A cost, longer by a random part of the jitter."""
    if sim.costs.jitter == 0:
        return cost
    sim.random += SPLITMIX_STEP
    draw = np.int64(splitmix64(sim.random) & np.uint64(0xFFFF))
    return cost + (cost * sim.costs.jitter >> 16) * draw // 65536


@kernel(void(Simulation, i64))
def _wake_one(sim, clock):
    """Let the worker that sleeps longest look for work."""
    if sim.sleepers == 0:
        return
    worker = sim.sleeping[0]
    sim.sleepers -= 1
    for i in range(sim.sleepers):
        sim.sleeping[i] = sim.sleeping[i + 1]
    _push(sim, clock + sim.costs.poll, worker)


@kernel(void(Simulation, i64))
def _sleep(sim, worker):
    sim.sleeping[sim.sleepers] = worker
    sim.sleepers += 1


@kernel(i64(Simulation, Worker, i64, i64))
def _wait_for_lock(sim, wk, lock_free, clock):
    """When the worker has done with the lock that it took last, if any: it waits until that is free, and books it."""
    if wk.last_lock < 0:
        return clock
    free_from = lock_free + 8 * wk.last_lock
    wk.last_lock = -1
    start = max(clock, atomic_load(free_from))
    atomic_store(free_from, start + sim.costs.lock)
    return start + sim.costs.lock


@kernel(i64(Simulation, Counters, i64))
def _cost_of(sim, now, nodes):
    """What was done since `sim.before`, so many nodes among it, costs without jitter."""
    costs, before = sim.costs, sim.before
    searched = now.qnodes - before.qnodes
    cost = searched * costs.qnode + (nodes - searched) * costs.node
    cost += (now.opens - before.opens) * costs.open + (now.joins - before.joins) * costs.join
    cost += (now.parks + now.adopts - before.parks - before.adopts) * costs.leave
    return cost + (now.aborts - before.aborts) * costs.abort + (now.claims - before.claims) * costs.claim


@kernel(i64(Context, Simulation, i64, i64, i64))
def _turn(ctx, sim, worker, clock, lock_free):
    """One turn of one worker; returns its new clock, or -1 when it has fallen asleep."""
    wk = worker_of(ctx, worker)
    now, before = wk.counters, sim.before
    begun = clock
    was_idle = wk.state == STATE_IDLE
    nodes = wk.nodes
    copy_record(before, now)
    first_event = begin_turn(ctx, worker, begun) if ctx.trace != 0 else 0
    for _ in range(_MOST_TRANSITIONS):
        if step(ctx, worker, 1) > 0:
            break
        if wk.nodes != nodes or wk.state == STATE_IDLE:
            break
    cost = _cost_of(sim, now, wk.nodes - nodes)
    is_idle = wk.state == STATE_IDLE
    if is_idle and not was_idle:
        cost += sim.costs.leave
    clock = _wait_for_lock(sim, wk, lock_free, clock)
    joined_at = clock + sim.costs.join
    clock += _jittered(sim, cost)
    if ctx.trace != 0:
        settle_turn(ctx, worker, first_event, min(joined_at, clock), clock)
    has_joined = now.joins != before.joins
    if now.opens != before.opens:
        _wake_one(sim, clock)
    if has_joined:
        # the others have seen the same offer at the same time: two more for each that joins, so all come at once
        _wake_one(sim, begun)
        _wake_one(sim, begun)
    if was_idle and has_joined:
        sim.idle_time[worker] += max(begun - sim.idle_since[worker], np.int64(0))
    if is_idle and (not was_idle or has_joined):
        sim.idle_since[worker] = clock
    elif was_idle and not has_joined:
        # an offer that was out of moves has been withdrawn by now: look again, there may be others
        return clock + sim.costs.poll if now.failed_joins != before.failed_joins else -1
    return clock


@entry(i64(i64, i64, i64, i64), VIRTUAL)
def run_virtual(context, simulation, lock_free, max_events):
    """Run until the search is done or for `max_events` turns; 1 when it is done.

    context, simulation: addresses of the records; lock_free: address of an int64 per frame, zero at the start.
    """
    ctx = context_at(context)
    sim = simulation_at(simulation)
    hd = header_of(ctx)
    for _ in range(max_events):
        if atomic_load(done_of(hd)) != 0:
            return 1
        if sim.heap_size == 0:
            return -1  # all workers sleep and the search is not done: a bug
        top = _pop(sim)
        worker = top & (MAX_WORKERS - 1)
        sim.events += 1
        sim.now = sim.base + (top >> WORKER_BITS)
        if sim.now - sim.base >> (_CLOCK_BITS - 1) != 0:
            _move_base(sim)
        if 0 < sim.deadline <= sim.now and atomic_load(stop_of(hd)) == 0:
            stop_all(ctx)
        clock = _turn(ctx, sim, worker, sim.now, lock_free)
        if clock < 0:
            _sleep(sim, worker)
        else:
            sim.now = clock
            _push(sim, clock, worker)
    return 1 if atomic_load(done_of(hd)) != 0 else 0


@entry(void(i64, i64), VIRTUAL)
def begin_virtual(context, simulation):
    """All clocks at zero; `costs`, `random` and `deadline` must have been set."""
    ctx = context_at(context)
    sim = simulation_at(simulation)
    sim.now = 0
    sim.base = 0
    sim.heap_size = 0
    sim.sleepers = 0
    sim.events = 0
    for worker in range(header_of(ctx).worker_count):
        sim.idle_since[worker] = 0
        sim.idle_time[worker] = 0
        _push(sim, np.int64(0), worker)
