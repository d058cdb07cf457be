"""The workers' side of a trace: a log of events for each worker, in shared memory.

A trace is recorded when the context holds the address of the logs; the search looks at that only where it opens,
shares, leaves or aborts a node, never at a node that is not shared. Open nodes are many and joined ones few, so an
opening leaves only a time stamp in the frame, and the event is written by the last one out, if anybody had joined.

A log has room for so many events; what comes later is counted and dropped. An event is counted in the log once it is
complete, so that the logs of workers that were killed can be read. A log that is a ring (`psearch.lab.watching`) drops
nothing: the event after `count` others lies at `count` modulo the room, and who copies events while the worker goes on
takes those for torn that were overwritten meanwhile, by the count after the copy. Rings are for searches that nobody
asked to slow down, and one node in fifteen may be opened: no time is noted there at nodes that nobody has joined, so
begin is not known of TRACE_ABORT, whose nodes say how long it was, and TRACE_SPLIT is left out.

    event           fields besides kind, time, and the node's split, frame, depth, type, p_needed
    TRACE_TAKE      this worker runs another stack from now on; the node is the one that stack helps, none for a root
    TRACE_JOIN      begin, move: it has joined the node, which is that of the stack it runs from now on
    TRACE_IDLE      it has no stack any more; no node
    TRACE_ABORT     begin, value, outcome: the work of the worker since then, on a move of the node, is thrown away
    TRACE_SPLIT     begin, helpers, outcome: the life of an open node that helpers joined
    TRACE_ROOT      begin, value, move, outcome: one search of a root; helpers: of how many moves that have a line
                    already (MultiPV) it was without; p_needed is not set

Times are those of the time stamp counter, or of the worker's virtual clock when its turn began; `settle_turn` then
moves the events of the turn to where they belong.

Locks: each log is written by its worker alone. A number and times of an open node lie in its frame, under its lock.
"""

from __future__ import annotations

import numpy as np

from psearch.scheduler.scheduler_entries import SEARCH
from psearch_core.records import (
    MAX_PLY,
    TRACE_ABORT,
    TRACE_EVENT_SIZE,
    TRACE_IDLE,
    TRACE_JOIN,
    TRACE_LOG_SIZE,
    TRACE_ROOT,
    TRACE_SPLIT,
    TRACE_TAKE,
    WORKER_BITS,
)
from psearch_core.toolchain.intrinsics import atomic_load, atomic_store, clear_record, cycle_counter, field_address
from psearch_core.toolchain.jit import entry, kernel
from psearch_core.views import (
    Context,
    TraceLog,
    Worker,
    boolean,
    frame_of,
    i64,
    stack_of,
    trace_event_at,
    trace_log_at,
    void,
)

_count_of = field_address(TraceLog, "count")


@entry(i64(), SEARCH)
def read_cycles():
    """Return the time stamp counter, for the parent."""
    return cycle_counter()


@kernel(i64(Context, i64))
def _log_address(ctx, worker):
    return ctx.trace + worker * (TRACE_LOG_SIZE + ctx.trace_capacity * TRACE_EVENT_SIZE)


@kernel(i64(Context, Worker))
def trace_time(ctx, wk):
    """Return the time now. Only while a trace is recorded."""
    clock = np.int64(trace_log_at(_log_address(ctx, np.int64(wk.index))).clock)
    return clock if clock >= 0 else cycle_counter()


@kernel(boolean(Context, Worker))
def _is_ring(ctx, wk):
    """Whether only what happened last is kept."""
    return trace_log_at(_log_address(ctx, np.int64(wk.index))).ring != 0


@kernel(i64(Context, Worker, i64, i64))
def _new_event(ctx, wk, kind, time):
    """Address of the next event, not yet counted, with all other fields unset; 0 when the log is full."""
    where = _log_address(ctx, np.int64(wk.index))
    log = trace_log_at(where)
    place = np.int64(log.count)
    if place >= ctx.trace_capacity:
        if log.ring == 0:
            if log.dropped == 0:
                log.dropped_from = time
            log.dropped += 1
            return np.int64(0)
        place %= ctx.trace_capacity
    at = where + TRACE_LOG_SIZE + place * TRACE_EVENT_SIZE
    event = trace_event_at(at)
    clear_record(event)
    event.kind = kind
    event.time = time
    event.begin = time
    event.frame = -1
    return at


@kernel(void(Context, Worker))
def _count_event(ctx, wk):
    count = _count_of(trace_log_at(_log_address(ctx, np.int64(wk.index))))
    atomic_store(count, atomic_load(count) + 1)


@kernel(void(Context, i64, i64))
def _set_node(ctx, at, home):
    """The event is about this open node, which cannot go meanwhile."""
    event = trace_event_at(at)
    frame = frame_of(ctx, home)
    event.split = frame.trace.split
    event.frame = home
    event.depth = frame.node.depth
    event.type = frame.node.split_type
    event.p_needed = frame.node.p_needed


@kernel(void(Context, Worker, i64))
def trace_open(ctx, wk, home):
    """Note when this worker opened a node, and give it a number. Under the node's lock, before helpers see it."""
    trace = frame_of(ctx, home).trace
    if not _is_ring(ctx, wk):
        trace.opened = trace_time(ctx, wk)
    trace.split = (wk.counters.opens + 1) << WORKER_BITS | wk.index


@kernel(void(Context, Worker))
def trace_move(ctx, wk):
    """Note when this worker took the move in the visit of its frame."""
    if not _is_ring(ctx, wk):
        frame_of(ctx, wk.stack * MAX_PLY + wk.ply).trace.began = trace_time(ctx, wk)


@kernel(void(Context, Worker, i64, i64))
def trace_join(ctx, wk, home, begin):
    """Note that this worker has joined the open node `home`, and has a stack whose frame at that ply holds its
    visit."""
    now = trace_time(ctx, wk)
    frame = frame_of(ctx, wk.stack * MAX_PLY + wk.ply)
    frame.trace.began = now
    at = _new_event(ctx, wk, TRACE_JOIN, now)
    if at == 0:
        return
    _set_node(ctx, at, home)
    event = trace_event_at(at)
    event.begin = begin
    event.p_needed = frame.visit.p_needed
    event.move = frame.visit.move
    _count_event(ctx, wk)


@kernel(void(Context, Worker))
def trace_take(ctx, wk):
    """Note that this worker runs the stack `wk.stack` from now on, and has not joined it."""
    at = _new_event(ctx, wk, TRACE_TAKE, trace_time(ctx, wk))
    if at == 0:
        return
    home = np.int64(stack_of(ctx, wk.stack).home)
    if home >= 0:
        _set_node(ctx, at, home)
    _count_event(ctx, wk)


@kernel(void(Context, Worker))
def trace_idle(ctx, wk):
    at = _new_event(ctx, wk, TRACE_IDLE, trace_time(ctx, wk))
    if at != 0:
        _count_event(ctx, wk)


@kernel(void(Context, Worker, i64, i64, i64))
def trace_abort(ctx, wk, home, nodes, late):
    """Note that what was done on the move under way in this worker's frame, at the open node `home`, is thrown away.

    Before the node is left: its frame is somebody else's then. nodes: what it cost this worker, as far as known; late:
    1 when the move had got a value, but the node was closed by then.
    """
    at = _new_event(ctx, wk, TRACE_ABORT, trace_time(ctx, wk))
    if at == 0:
        return
    _set_node(ctx, at, home)
    event = trace_event_at(at)
    if not _is_ring(ctx, wk):
        event.begin = frame_of(ctx, wk.stack * MAX_PLY + wk.ply).trace.began
    event.value = nodes
    event.outcome = late
    _count_event(ctx, wk)


@kernel(void(Context, Worker, i64, i64))
def trace_split(ctx, wk, home, outcome):
    """Note that the last one has left the open node `home`, which had helpers."""
    if _is_ring(ctx, wk):
        return
    at = _new_event(ctx, wk, TRACE_SPLIT, trace_time(ctx, wk))
    if at == 0:
        return
    _set_node(ctx, at, home)
    frame = frame_of(ctx, home)
    event = trace_event_at(at)
    event.begin = frame.trace.opened
    event.helpers = frame.node.joined
    event.outcome = outcome
    _count_event(ctx, wk)


@kernel(void(Context, Worker))
def trace_root_entered(ctx, wk):
    frame_of(ctx, wk.stack * MAX_PLY).trace.entered = trace_time(ctx, wk)


@kernel(void(Context, Worker, i64, i64))
def trace_root(ctx, wk, score, outcome):
    """Note that a search of the root of this worker's stack has ended."""
    at = _new_event(ctx, wk, TRACE_ROOT, trace_time(ctx, wk))
    if at == 0:
        return
    root = wk.stack * MAX_PLY
    frame = frame_of(ctx, root)
    event = trace_event_at(at)
    event.begin = frame.trace.entered
    event.frame = root
    stack = stack_of(ctx, wk.stack)
    event.depth = stack.root_depth
    event.helpers = stack.root_line
    event.type = frame.node.split_type
    event.move = frame.node.best_move
    event.value = score
    event.outcome = outcome
    _count_event(ctx, wk)


# -- virtual time ----------------------------------------------------------------------------------------------------


@kernel(i64(Context, i64, i64))
def begin_turn(ctx, worker, clock):
    """Have what this worker does from now on happen at `clock`. Returns what `settle_turn` wants to know."""
    log = trace_log_at(_log_address(ctx, worker))
    log.clock = clock
    return np.int64(log.count)


@kernel(void(Context, i64, i64, i64, i64))
def settle_turn(ctx, worker, first, joined, ended):
    """Spread the events of a turn over its time; they all have the time when it began.

    Not for rings. first: number of the first event; joined: when a join ended, if there was one (a turn begins with
    it); ended: when the turn did. A worker that has become idle was busy until then.
    """
    where = _log_address(ctx, worker)
    earliest = np.int64(0)
    for i in range(first, trace_log_at(where).count):
        event = trace_event_at(where + TRACE_LOG_SIZE + i * TRACE_EVENT_SIZE)
        if event.kind == TRACE_JOIN:
            earliest = joined
        event.time = max(np.int64(event.time), earliest)
        if event.kind == TRACE_IDLE:
            event.time = ended
