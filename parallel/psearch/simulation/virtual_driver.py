"""The virtual-time driver: up to 1,024 workers in one process, in the order of their virtual clocks.

The worker with the smallest clock runs the compiled `step` until it has entered one node (or has nothing to do); then
its clock advances by the cost of what it did. Costs are integers, measured on a real machine (`Costs`), so that the
same position, depth, workers, policy, costs and seed give exactly the same node counts. docs/design/simulator.md lists
what is modelled and what is not.

A search in virtual time ends like a real one: at its depth, its node limit or its time limit, which every worker
notices within one node. A worker that finds no work falls asleep instead of polling: polls cost real time, and their
outcome cannot change before a node is opened. Each opened node wakes one sleeper, each successful join two more.
"""

import numpy as np

from psearch.scheduler.splitting import stop_all
from psearch.scheduler.step import step
from psearch.scheduler.trace_log import begin_turn, settle_turn
from psearch.scheduler.words import closed_of, done_of, idle_workers_of, mask_of, stop_of
from psearch.simulation.simulation_entries import VIRTUAL
from psearch_core.arithmetic import SPLITMIX_STEP, splitmix64
from psearch_core.constants import CLOSED_CUTOFF, STATE_CHILD, STATE_IDLE, STATE_NEXT
from psearch_core.records import COLD_NODES, MAX_PLY, MAX_WORKERS, WORKER_BITS, lock_dtype
from psearch_core.toolchain.intrinsics import atomic_load, check, copy_record, popcount
from psearch_core.toolchain.jit import entry, kernel
from psearch_core.views import (
    Context,
    Costs,
    Simulation,
    Worker,
    boolean,
    context_at,
    frame_of,
    header_of,
    i64,
    lock_at,
    simulation_at,
    stack_of,
    void,
    worker_of,
)

_MOST_TRANSITIONS = 256
"""Most transitions of a turn that enters no node; unwinding a deep stack takes one for each frame."""
_CLOCK_BITS = 63 - WORKER_BITS
"""Bits of a clock in the heap, enough for two and a half hours."""
_LOOKS = 4
"""Iterations to find the duration of a poll, which depends on the lines written meanwhile."""
_SHORTEST_LOOK = 1000
"""Least ticks of a repeated poll: one without costs would be repeated for ever while a lock is held."""
_LOCK_SIZE = lock_dtype.itemsize


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
    """Remove the smallest item from the heap and return it: a clock and its worker."""
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


@kernel(boolean(Context, i64))
def is_held_by_clock(ctx, home):
    """Replace `is_held`: between two turns no lock is really held, but it may be until a later virtual time."""
    return np.int64(lock_at(ctx.lock_times + _LOCK_SIZE * home).free) > ctx.clock


@kernel(i64(Context, Simulation))
def _look(ctx, sim):
    """Return the cost of a poll by a worker that polls repeatedly, and reads again the lines written since.

    The longer a poll takes, the more lines there are, up to those of all stacks and all offered nodes.
    """
    costs = sim.costs
    if costs.poll == 0 or costs.poll_line == 0 or sim.recent_changes == 0:
        return costs.poll
    most = np.int64(header_of(ctx).stack_count)
    if sim.recent_changes * _LOOKS >= most:
        for i in range(header_of(ctx).stack_count):
            words = mask_of(stack_of(ctx, i))
            most += popcount(np.uint64(atomic_load(words))) + popcount(np.uint64(atomic_load(words + 8)))
    time = np.int64(costs.poll)
    for _ in range(_LOOKS):
        lines = min(sim.recent_changes * time // costs.poll, most)
        time = costs.poll + costs.poll_line * lines
    return time


@kernel(void(Context, Simulation, i64))
def _wake_one(ctx, sim, clock):
    """Wake the worker that has slept longest, to look for work."""
    if sim.sleepers == 0:
        return
    worker = sim.sleeping[0]
    sim.sleepers -= 1
    for i in range(sim.sleepers):
        sim.sleeping[i] = sim.sleeping[i + 1]
    _push(sim, clock + _look(ctx, sim), worker)


@kernel(i64(Context, Costs, Worker, i64, i64, i64, i64, i64))
def _hold(ctx, costs, wk, state, home, stage, moves, closed):
    """Return how long the lock that a transition took last is held: for a join, a value, or the next move.

    state: the worker's state before the transition; home: frame whose lock it takes if the node is open, -1 if that is
    unknown; stage, moves, closed: that node's picker stage, moves handed out and `closed` before.
    """
    if state == STATE_IDLE and wk.state != STATE_IDLE:
        return np.int64(costs.hold_join)
    if home == wk.last_lock:
        node = frame_of(ctx, home).node
        if closed == 0 and atomic_load(closed_of(node)) == CLOSED_CUTOFF:
            return np.int64(costs.hold_learn)
        if node.moves_done != moves:
            value = np.int64(costs.hold_value) if state == STATE_CHILD else np.int64(0)
            return value + (costs.hold_move if node.stage == stage else costs.hold_new_moves)
    return np.int64(costs.hold_value)


@kernel(i64(Simulation, i64, i64, i64, i64, boolean, i64, boolean))
def _take_lock(sim, locks, home, worker, hold, joins, clock, opened):
    """Take a node's lock for `hold` ticks, during which others wait; return the worker's clock, without `lock`.

    A waiting worker gets the lock after a transfer of its cache line, and half a transfer until it looks: waiting
    workers look at different moments (`acquire`), so they do not queue for the line as well. joins: the lock is taken
    for a join; opened: for a node that no other worker could see before. The time of holding is part of the worker's
    other costs; that of the handover is added, except in a join.
    """
    lock = lock_at(locks + _LOCK_SIZE * home)
    free = max(clock, np.int64(lock.free))
    if lock.holder != worker + 1:
        if clock < lock.free:
            free += sim.costs.transfer + sim.costs.transfer // 2
            sim.waited += free - clock
        clock = free
        if lock.holder != 0 and not joins and not opened:
            hold += sim.costs.handover
            clock += sim.costs.handover
    lock.holder = worker + 1
    lock.free = free + hold
    return clock


@kernel(i64(Context, Simulation, Worker, i64))
def _cost_of_nodes(ctx, sim, wk, nodes):
    """Return the cost of the nodes searched since `sim.before`, including that of sharing memory."""
    costs = sim.costs
    searched = wk.counters.qnodes - sim.before.qnodes
    cost = searched * costs.qnode + (nodes - searched) * costs.node
    worker = wk.index
    hd = header_of(ctx)
    busy = hd.worker_count - atomic_load(idle_workers_of(hd))
    if busy > 1:
        cost += (cost * costs.crowd >> 16) * 2 * (busy - 1) // busy
    if wk.counters.joins != sim.before.joins:
        sim.since_join[worker] = 0
    for _ in range(nodes):
        if sim.since_join[worker] == COLD_NODES:
            break
        cost += sim.cold[sim.since_join[worker]]
        sim.since_join[worker] += 1
    return cost


@kernel(i64(Context, Simulation, Worker, i64, i64, boolean))
def _cost_of_others(ctx, sim, wk, nodes, epoch, was_idle):
    """Return the cost of all actions since `sim.before` except nodes. It includes the transfer of words that another
    worker has written: the abort epoch, read at every node, and the number of idle workers, if the policy reads it.

    nodes: nodes entered since `sim.before`; epoch, was_idle: abort epoch seen, and whether the worker was idle, then.
    """
    costs, before, now, worker = sim.costs, sim.before, wk.counters, wk.index
    opens = now.opens - before.opens
    cost = opens * costs.open + (now.joins - before.joins) * costs.join
    if sim.sleepers > 0:
        cost += 2 * opens * costs.transfer  # to offer and to withdraw: polling workers have read the stack's line
    cost += (now.parks + now.adopts - before.parks - before.adopts) * costs.leave
    cost += (now.aborts - before.aborts) * costs.abort + (now.claims - before.claims) * costs.claim
    if nodes > 0 and wk.seen_epoch != epoch and epoch >= 0:
        cost += costs.transfer
    if ctx.has_read_idle != 0 and sim.idle_seen[worker] != sim.idle_changes:
        cost += costs.transfer
        sim.idle_seen[worker] = sim.idle_changes
    is_idle = wk.state == STATE_IDLE
    if was_idle != is_idle or now.joins != before.joins:
        sim.idle_changes += 1
        sim.idle_seen[worker] = sim.idle_changes
    return cost + (costs.leave if is_idle and not was_idle else np.int64(0))


@kernel(i64(Context, Simulation, i64, i64, i64))
def _run_turn(ctx, sim, worker, clock, locks):
    """Run a worker until it has entered a node or is idle; return its clock, including the waiting for locks.

    The last lock costs `lock`; earlier ones count if they are held for a time, as if taken at the start of the turn.
    """
    wk = worker_of(ctx, worker)
    nodes = wk.nodes
    pending = np.int64(-1)
    hold = np.int64(0)
    joins = opened = False
    for _ in range(_MOST_TRANSITIONS):
        state = wk.state
        home = np.int64(-1)
        stage = moves = closed = np.int64(0)
        if state in (STATE_NEXT, STATE_CHILD):
            home = np.int64(frame_of(ctx, wk.stack * MAX_PLY + wk.ply).visit.home)
            node = frame_of(ctx, home).node
            moves, stage, closed = np.int64(node.moves_done), np.int64(node.stage), atomic_load(closed_of(node))
        opens = wk.counters.opens
        idle = step(ctx, worker, 1) > 0
        if wk.last_lock >= 0:
            if pending >= 0 and hold > 0:
                clock = _take_lock(sim, locks, pending, worker, hold, joins, clock, opened)
            hold = _hold(ctx, sim.costs, wk, state, home, stage, moves, closed)
            joins = state == STATE_IDLE and wk.state != STATE_IDLE
            opened = wk.counters.opens != opens
            pending = np.int64(wk.last_lock)
            wk.last_lock = -1
            sim.changes += 1
        if idle or wk.nodes != nodes or wk.state == STATE_IDLE:
            break
    if pending < 0:
        return clock
    clock = _take_lock(sim, locks, pending, worker, hold, joins, clock, opened)
    lock_at(locks + _LOCK_SIZE * pending).free += sim.costs.lock
    return clock + sim.costs.lock


@kernel(i64(Context, Simulation, i64, i64, i64))
def _turn(ctx, sim, worker, clock, locks):
    """Run one turn of a worker; return its new clock, or -1 if it falls asleep."""
    wk = worker_of(ctx, worker)
    now, before = wk.counters, sim.before
    begun = clock
    was_idle = wk.state == STATE_IDLE
    nodes, epoch = wk.nodes, wk.seen_epoch
    copy_record(before, now)
    ctx.clock = begun
    ctx.has_read_idle = 0
    first_event = begin_turn(ctx, worker, begun) if ctx.trace != 0 else 0
    clock = _run_turn(ctx, sim, worker, clock, locks)
    nodes = wk.nodes - nodes
    cost = _cost_of_nodes(ctx, sim, wk, nodes) + _cost_of_others(ctx, sim, wk, nodes, epoch, was_idle)
    is_idle = wk.state == STATE_IDLE
    joined_at = clock + sim.costs.join
    if sim.costs.jitter != 0:  # increase the cost by a random part of the jitter
        sim.random += SPLITMIX_STEP
        draw = np.int64(splitmix64(sim.random) & np.uint64(0xFFFF))
        cost += (cost * sim.costs.jitter >> 16) * draw // 65536
    clock += cost
    if ctx.trace != 0:
        settle_turn(ctx, worker, first_event, min(joined_at, clock), clock)
    has_joined = now.joins != before.joins
    sim.changes += now.opens - before.opens + now.joins - before.joins + now.parks - before.parks
    if now.opens != before.opens:
        _wake_one(ctx, sim, clock)
    if has_joined:
        # sleepers would have seen the same offer at the same time: each join wakes two more, so all come at once
        _wake_one(ctx, sim, begun)
        _wake_one(ctx, sim, begun)
    if was_idle and has_joined:
        sim.idle_time[worker] += max(begun - sim.idle_since[worker], np.int64(0))
    if is_idle and (not was_idle or has_joined):
        sim.idle_since[worker] = clock
    elif was_idle and is_idle and not has_joined:
        # poll again after a failed join or a held lock: that offer is withdrawn by now, or will be free
        if now.failed_joins == before.failed_joins and now.held_offers == before.held_offers:
            return -1
        return clock + max(_look(ctx, sim), np.int64(_SHORTEST_LOOK))
    return clock


@entry(i64(i64, i64, i64, i64, i64), VIRTUAL)
def run_virtual(context, simulation, locks, max_events, pause):
    """Run turns; return 1 when the search is done, 2 when no turn begins before `pause`, 0 after `max_events`, else -1.

    context, simulation: addresses of the records; locks: address of zeroed `lock_dtype` records, one for each frame;
    pause: a clock, 0 for none. -1 means that all workers sleep.
    """
    ctx = context_at(context)
    sim = simulation_at(simulation)
    hd = header_of(ctx)
    ctx.lock_times = locks
    for _ in range(max_events):
        if atomic_load(done_of(hd)) != 0:
            return 1
        if sim.heap_size == 0:
            return -1  # the search is not done: a bug
        if 0 < pause <= sim.base + (sim.heap[0] >> WORKER_BITS):
            return 2
        top = _pop(sim)
        worker = top & (MAX_WORKERS - 1)
        sim.events += 1
        sim.now = sim.base + (top >> WORKER_BITS)
        if sim.now - sim.base >> (_CLOCK_BITS - 1) != 0:
            passed = (sim.now - sim.base) << WORKER_BITS  # clocks in the heap now count from `now`: none is earlier
            for i in range(sim.heap_size):
                sim.heap[i] -= passed
            sim.base = sim.now
        if 0 < sim.deadline <= sim.now and atomic_load(stop_of(hd)) == 0:
            stop_all(ctx)
        elapsed = sim.now - sim.window_began
        if elapsed >= max(sim.costs.poll, np.int64(1)):
            # measured over at least the time of a poll: lines written that a poll reads
            sim.recent_changes = (sim.changes - sim.window_changes) * sim.costs.poll // elapsed
            sim.window_began, sim.window_changes = sim.now, sim.changes
        clock = _turn(ctx, sim, worker, sim.now, locks)
        if clock < 0:
            sim.sleeping[sim.sleepers] = worker
            sim.sleepers += 1
        else:
            sim.now = clock
            _push(sim, clock, worker)
    return 1 if atomic_load(done_of(hd)) != 0 else 0


@entry(void(i64, i64), VIRTUAL)
def begin_virtual(context, simulation):
    """Start all workers with their clocks at zero; `costs`, `cold`, `random` and `deadline` must have been set."""
    ctx = context_at(context)
    sim = simulation_at(simulation)
    sim.now = sim.base = sim.heap_size = sim.sleepers = sim.events = sim.waited = 0
    sim.changes = sim.window_began = sim.window_changes = sim.recent_changes = sim.idle_changes = 0
    for worker in range(header_of(ctx).worker_count):
        step(ctx, worker, 1)
        sim.idle_since[worker] = sim.idle_time[worker] = sim.idle_seen[worker] = 0
        sim.since_join[worker] = COLD_NODES
        _push(sim, np.int64(0), worker)
