"""What belongs to one worker: its counters, what it has seen for the prediction of node types, its log for a trace."""

from __future__ import annotations

from psearch_core.records.chess import evaluation_dtype
from psearch_core.records.layout import CACHE_LINE, MAX_PLY, offset_of, record
from psearch_core.records.pruning_record import TECHNIQUES

TYPES = 3
BOUNDS = 3  # of the table entry: none (or exact), upper, lower
DEPTHS = 20  # remaining depth, the last for all above
PROGRESS = 8  # moves done without a cutoff, in steps: see `progress_step`
BINS = 16
"""Bins of probabilities, in reliability curves."""
CERTAIN = 1 << 16
"""Probabilities are integers in units of 1/65536, so that every machine computes the same."""

outcomes_dtype = record(
    [
        # by expected type, table bound, depth, progress at the end: nodes that failed low or were exact, nodes that cut
        ("ended", "i4", (TYPES, BOUNDS, DEPTHS, PROGRESS, 2)),
        ("deepest", "i8"),  # depth among them
        # by the type of the node, its depth and the step of the move's number: moves searched, their nodes
        ("move_sizes", "i8", (TYPES, DEPTHS, PROGRESS, 2)),
        # moves taken at nodes that other workers were inside, by P(needed) at that time: all, and those whose result
        # was used in the end
        ("needed_seen", "i8", (BINS,)),
        ("needed_used", "i8", (BINS,)),
        ("wasted", "i8", (TYPES,)),  # nodes thrown away, by the expected type of the node that was cut off
    ]
)

prediction_dtype = record(
    [
        ("seen", "i8", (TYPES, BOUNDS, DEPTHS, PROGRESS)),  # all outcomes so far; older iterations count less
        ("cut", "i8", (TYPES, BOUNDS, DEPTHS, PROGRESS)),
        ("p_no_cut", "i4", (TYPES, BOUNDS, DEPTHS, PROGRESS)),  # P(no cutoff), in 1/65536
        ("p_pass", "i4", (TYPES, BOUNDS, DEPTHS, PROGRESS)),  # P(the next move is done without a cutoff), the same
        ("move_sizes", "i8", (TYPES, DEPTHS, PROGRESS, 2)),  # of all workers; older iterations count less
        ("move_size", "i8", (TYPES, DEPTHS, PROGRESS)),  # expected nodes of a move of a node
        ("join_cost", "i8"),  # nodes that a worker could search in the time a join takes, measured
        ("fresh", "i8", (TYPES, BOUNDS, DEPTHS, PROGRESS, 2)),  # `ended` of all workers; zero but during a merge
        # for the study of predictions: what no merge forgets
        ("all_seen", "i8", (TYPES, BOUNDS, DEPTHS, PROGRESS)),
        ("all_cut", "i8", (TYPES, BOUNDS, DEPTHS, PROGRESS)),
        # by the P(no cutoff) that was in force, at entry and after moves: nodes, nodes without cutoff, sum of the
        # predictions and of their squared errors (in 1/65536)
        ("bin_seen", "i8", (2, BINS)),
        ("bin_no_cut", "i8", (2, BINS)),
        ("bin_p", "i8", (2, BINS)),
        ("bin_error", "i8", (2, BINS)),
    ]
)

TECHNIQUE_ROOM = 32
"""Places for the counts of techniques."""
OWN_RULE = TECHNIQUE_ROOM - 1
"""The place of what a user's file counts."""
if len(TECHNIQUES) > OWN_RULE:
    raise AssertionError(f"no room for {len(TECHNIQUES)} techniques")

counters_dtype = record(
    [
        # of one search; zero when it begins
        ("seldepth", "i8"),
        ("qnodes", "i8"),
        ("opens", "i8"),
        ("splits", "i8"),  # nodes finished that had helpers; counted by the last one out
        ("joins", "i8"),
        ("parks", "i8"),
        ("adopts", "i8"),
        ("aborts", "i8"),  # unwinds begun
        ("aborted_nodes", "i8"),
        ("polls", "i8"),  # looks for work that found none
        ("failed_joins", "i8"),
        ("held_offers", "i8"),  # passed over in looks for work, since another worker held the lock
        ("claims", "i8"),  # positions claimed
        ("join_cycles", "i8"),  # time stamp counter, spent in joins that succeeded
        ("idle_cycles", "i8"),  # time stamp counter, by the process driver
        ("search_cycles", "i8"),  # the same, since this worker began the search
    ]
)

worker_dtype = record(
    [
        # the first line changes all the time and is read by the supervisor every now and then
        ("nodes", "i8"),
        ("index", "i8"),  # this worker's number
        ("state", "i8"),  # STATE_IDLE .. : which handler runs next
        ("stack", "i8"),  # -1 when idle
        ("ply", "i8"),
        ("value", "i8"),  # what the last finished child returned, in the child's view
        ("seen_epoch", "i8"),  # the abort epoch this worker has acted on; -1 forces a look
        ("next_check", "i8"),  # look at the node limit when `nodes` gets here
        ("last_victim", "i8"),  # where the next look for work begins
        ("last_stack", "i8"),  # where the next look for a free stack begins
        ("last_lock", "i8"),  # number of the frame last locked, -1 none since the driver looked: for virtual time
        ("locks", "i8"),  # that it holds; only in a build with checks
        ("counters", counters_dtype),
        ("pad", "u1", (32,)),  # `ended` of the outcomes begins a cache line
        ("outcomes", outcomes_dtype),  # since the last merge
        ("killers", "i4", (MAX_PLY, 2)),
        ("pruned", "i8", (TECHNIQUE_ROOM, 2)),  # by technique: times tried, times it pruned (reduced, extended)
        ("pad_pruned", "u1", (32,)),
        ("evaluation", evaluation_dtype),
    ]
)


# Events that a worker may have in its log; which fields an event has is said in `psearch.scheduler.trace_log`
TRACE_TAKE, TRACE_JOIN, TRACE_IDLE, TRACE_ABORT, TRACE_SPLIT, TRACE_ROOT = range(1, 7)

ROOT_STOPPED = -1
"""Outcome of a search of the root that was stopped; else a bound."""
trace_event_dtype = record(
    [
        ("time", "i8"),  # when it happened, or ended: time stamp counter, or virtual ticks
        ("begin", "i8"),  # when it began
        ("split", "i8"),  # number of the open node it is about, as in `frame_trace_dtype`
        ("value", "i8"),  # nodes thrown away (TRACE_ABORT); score (TRACE_ROOT)
        ("kind", "i4"),
        ("frame", "i4"),  # number of the frame of the node it is about, -1 none
        ("depth", "i4"),
        ("type", "i4"),  # expected type of the node
        ("p_needed", "i4"),  # in 1/65536
        ("move", "i4"),  # taken by the helper (TRACE_JOIN); best (TRACE_ROOT)
        ("helpers", "i4"),  # that joined (TRACE_SPLIT)
        # `closed` of the node (TRACE_SPLIT); 1: the value came too late (TRACE_ABORT); bound (TRACE_ROOT)
        ("outcome", "i4"),
    ]
)

trace_log_dtype = record(
    [
        # Before the events of each worker, and written by that worker; the clock also by the driver in virtual time
        ("count", "i8"),  # atomic; events in the log: an event is complete once it is counted
        ("dropped", "i8"),  # events that found no room
        ("dropped_from", "i8"),  # when the first of them happened
        ("clock", "i8"),  # virtual time at which this worker's turn began; -1: use the time stamp counter
        # 1: a ring, for whoever looks on: the latest events take the place of the oldest, none is dropped. Parent
        ("ring", "i8"),
        ("pad", "i8", (3,)),
    ]
)

WORKER_SIZE, TRACE_EVENT_SIZE, TRACE_LOG_SIZE = (
    dtype.itemsize for dtype in (worker_dtype, trace_event_dtype, trace_log_dtype)
)
if WORKER_SIZE % CACHE_LINE or TRACE_EVENT_SIZE != CACHE_LINE or TRACE_LOG_SIZE != CACHE_LINE:
    raise AssertionError(f"record sizes: worker {WORKER_SIZE}, trace event {TRACE_EVENT_SIZE}, log {TRACE_LOG_SIZE}")
if offset_of(worker_dtype, "outcomes") % CACHE_LINE or offset_of(outcomes_dtype, "ended"):
    raise AssertionError("the counts of a class lie in two cache lines")
