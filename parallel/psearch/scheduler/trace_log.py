"""Logs of events in shared memory, one for each worker, from which a trace is made.

A trace is recorded while the context holds the address of the logs. The search checks this only when it opens, shares,
leaves or aborts a node, never at nodes that are not shared. Many nodes are opened, but few are joined. So opening a
node only puts a time stamp into its frame, and the last worker to leave writes the event, if a helper has joined.

When a log is full, further events are counted and dropped. An event is counted in the log once it is complete, so the
logs of killed workers can be read. A log that is a ring (`psearch.lab.watching`) drops no events: the event after
`count` others is at `count` modulo the capacity. A reader that copies events while the worker runs compares the count
after the copy, and ignores events that may have been overwritten. Rings must not slow a search down, and one node in
fifteen may be opened, so they store no times at nodes without helpers: TRACE_ABORT then has no begin (its nodes tell
how long it took), and TRACE_SPLIT begins when it ends.

    event           fields besides kind, time, and the node's split, frame, depth, type, p_needed
    TRACE_TAKE      the worker runs another stack from now on; the node is the one that the stack helps, none for a root
    TRACE_JOIN      begin, move: the worker has joined the node and runs a new stack from now on
    TRACE_IDLE      the worker has no stack any more; no node
    TRACE_ABORT     begin, value, outcome: the worker's work on a move of the node since begin was in vain
    TRACE_SPLIT     begin, helpers, outcome, move, value (the best ones): the life of an open node that helpers joined
    TRACE_ROOT      begin, value, move, outcome: one search of a root; helpers: number of moves that already have a line
                    (MultiPV) and were left out; p_needed is not set

Times are those of the time stamp counter, or of the worker's virtual clock at the beginning of its turn; `settle_turn`
then corrects the times of the turn's events.

Locks: each log is written only by its worker. Number and times of an open node are in its frame, under its lock.
"""

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
    """Return the time stamp counter, for Python."""
    return cycle_counter()


@kernel(i64(Context, i64))
def _log_address(ctx, worker):
    return ctx.trace + worker * (TRACE_LOG_SIZE + ctx.trace_capacity * TRACE_EVENT_SIZE)


@kernel(i64(Context, Worker))
def trace_time(ctx, wk):
    """Return the present time. Called only while a trace is recorded."""
    clock = np.int64(trace_log_at(_log_address(ctx, np.int64(wk.index))).clock)
    return clock if clock >= 0 else cycle_counter()


@kernel(boolean(Context, Worker))
def _is_ring(ctx, wk):
    return trace_log_at(_log_address(ctx, np.int64(wk.index))).ring != 0


@kernel(i64(Context, Worker, i64, i64))
def _new_event(ctx, wk, kind, time):
    """Return the address of a new event, not counted yet, with kind and time set; 0 if the log is full."""
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
    """Set the fields of an event that describe its open node, which other workers cannot finish meanwhile."""
    event = trace_event_at(at)
    frame = frame_of(ctx, home)
    event.split = frame.trace.split
    event.frame = home
    event.depth = frame.node.depth
    event.type = frame.node.split_type
    event.p_needed = frame.node.p_needed


@kernel(void(Context, Worker, i64))
def trace_open(ctx, wk, home):
    """Record when this worker opened a node, and number it. Called under the node's lock, before helpers see it."""
    trace = frame_of(ctx, home).trace
    if not _is_ring(ctx, wk):
        trace.opened = trace_time(ctx, wk)
    trace.split = (wk.counters.opens + 1) << WORKER_BITS | wk.index


@kernel(void(Context, Worker))
def trace_move(ctx, wk):
    """Record when this worker took the move in the visit of its frame."""
    if not _is_ring(ctx, wk):
        frame_of(ctx, wk.stack * MAX_PLY + wk.ply).trace.began = trace_time(ctx, wk)


@kernel(void(Context, Worker, i64, i64))
def trace_join(ctx, wk, home, begin):
    """Record that this worker has joined the open node `home`; the frame at that ply of its stack has its visit."""
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
    """Record that this worker runs the stack `wk.stack` from now on, without a join."""
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
    """Record that the work on the current move of this worker's frame, at the open node `home`, was in vain.

    Called before the worker leaves the node, since another worker may use the frame afterwards. nodes: nodes of this
    worker, as far as known; late: 1 if the move has a value, but the node was closed before.
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
    """Record that the last worker has left the open node `home`, which had helpers."""
    at = _new_event(ctx, wk, TRACE_SPLIT, trace_time(ctx, wk))
    if at == 0:
        return
    _set_node(ctx, at, home)
    frame = frame_of(ctx, home)
    event = trace_event_at(at)
    if not _is_ring(ctx, wk):
        event.begin = frame.trace.opened
    event.helpers = frame.node.joined
    event.move = frame.node.best_move
    event.value = frame.node.best
    event.outcome = outcome
    _count_event(ctx, wk)


@kernel(void(Context, Worker))
def trace_root_entered(ctx, wk):
    frame_of(ctx, wk.stack * MAX_PLY).trace.entered = trace_time(ctx, wk)


@kernel(void(Context, Worker, i64, i64))
def trace_root(ctx, wk, score, outcome):
    """Record that a search of the root of this worker's stack has ended."""
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
    """Set the time of this worker's next events to `clock`. Returns the number of the next event, for `settle_turn`."""
    log = trace_log_at(_log_address(ctx, worker))
    log.clock = clock
    return np.int64(log.count)


@kernel(void(Context, i64, i64, i64, i64))
def settle_turn(ctx, worker, first, joined, ended):
    """Correct the times of a turn's events, which all have the time when the turn began.

    Rings are not supported. first: number of the first event; joined: when a join ended, with which a turn may begin;
    ended: when the turn ended. A worker that became idle was busy until then.
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
