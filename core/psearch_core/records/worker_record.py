"""Records of one worker: counters, observations for the prediction of node types, its log for a trace."""

from psearch_core.records.chess import evaluation_dtype
from psearch_core.records.layout import CACHE_LINE, MAX_PLY, offset_of, record
from psearch_core.records.pruning_record import TECHNIQUES

TYPES = 3
BOUNDS = 3  # bounds of a table entry: none (or exact), upper, lower
DEPTHS = 20  # remaining depths, the last for all above
PROGRESS = 8  # steps of the number of moves done without a cutoff: see `progress_step`
BINS = 16
"""Number of bins of probabilities, in reliability curves."""
CERTAIN = 1 << 16
"""Probability 1. Probabilities are integers in units of 1/65536, so that every machine computes the same."""

outcomes_dtype = record(
    [
        # by expected type, table bound, depth, progress at the end: nodes that failed low or were exact, nodes that cut
        ("ended", "i4", (TYPES, BOUNDS, DEPTHS, PROGRESS, 2)),
        ("deepest", "i8"),  # greatest depth of these nodes
        # by type and depth of the node, and step of the move's number: moves searched, their nodes
        ("move_sizes", "i8", (TYPES, DEPTHS, PROGRESS, 2)),
        # moves taken while other workers were inside the node, by P(needed) at that time: all of them, and those whose
        # result was used
        ("needed_seen", "i8", (BINS,)),
        ("needed_used", "i8", (BINS,)),
        ("wasted", "i8", (TYPES,)),  # nodes searched in vain, by the expected type of the node that was cut off
    ]
)

prediction_dtype = record(
    [
        ("seen", "i8", (TYPES, BOUNDS, DEPTHS, PROGRESS)),  # outcomes so far; older iterations count less
        ("cut", "i8", (TYPES, BOUNDS, DEPTHS, PROGRESS)),
        ("p_no_cut", "i4", (TYPES, BOUNDS, DEPTHS, PROGRESS)),  # P(no cutoff), in 1/65536
        ("p_pass", "i4", (TYPES, BOUNDS, DEPTHS, PROGRESS)),  # P(next move is done without a cutoff), in 1/65536
        ("move_sizes", "i8", (TYPES, DEPTHS, PROGRESS, 2)),  # sizes from all workers; older iterations count less
        ("move_size", "i8", (TYPES, DEPTHS, PROGRESS)),  # expected nodes of a move of a node
        ("join_cost", "i8"),  # measured cost of a join: nodes that a worker could search in the same time
        ("fresh", "i8", (TYPES, BOUNDS, DEPTHS, PROGRESS, 2)),  # `ended` of all workers; zero except during a merge
        # for the study of predictions: counts in which older iterations weigh as much
        ("all_seen", "i8", (TYPES, BOUNDS, DEPTHS, PROGRESS)),
        ("all_cut", "i8", (TYPES, BOUNDS, DEPTHS, PROGRESS)),
        # by the P(no cutoff) used in the search, at entry and after moves: nodes, nodes without cutoff, sum of the
        # predictions, and sum of their squared errors (in 1/65536)
        ("bin_seen", "i8", (2, BINS)),
        ("bin_no_cut", "i8", (2, BINS)),
        ("bin_p", "i8", (2, BINS)),
        ("bin_error", "i8", (2, BINS)),
    ]
)

TECHNIQUE_ROOM = 32
"""Number of places for the counts of techniques."""
OWN_RULE = TECHNIQUE_ROOM - 1
"""Place for the counts of a user's file."""
if len(TECHNIQUES) > OWN_RULE:
    raise AssertionError(f"no room for {len(TECHNIQUES)} techniques")

counters_dtype = record(
    [
        # counts of one search, zero when it begins
        ("seldepth", "i8"),
        ("qnodes", "i8"),
        ("opens", "i8"),
        ("splits", "i8"),  # finished nodes that had helpers, counted by the last worker to leave
        ("joins", "i8"),
        ("parks", "i8"),
        ("adopts", "i8"),
        ("aborts", "i8"),  # unwinds begun
        ("aborted_nodes", "i8"),
        ("polls", "i8"),  # looks for work that found none
        ("failed_joins", "i8"),
        ("held_offers", "i8"),  # offers ignored in looks for work, since another worker held the lock
        ("claims", "i8"),  # positions claimed
        ("join_cycles", "i8"),  # cycles of the time stamp counter in joins that succeeded
        ("idle_cycles", "i8"),  # cycles while idle, counted by the process driver
        ("search_cycles", "i8"),  # cycles since this worker began the search
    ]
)

worker_dtype = record(
    [
        # the first cache line changes all the time; the supervisor reads it now and then
        ("nodes", "i8"),
        ("index", "i8"),  # number of the worker
        ("state", "i8"),  # state (STATE_IDLE ..), which names the handler that runs next
        ("stack", "i8"),  # -1 when idle
        ("ply", "i8"),
        ("value", "i8"),  # value of the last finished child, in the child's view
        ("seen_epoch", "i8"),  # abort epoch that this worker has handled; -1 forces a look
        ("next_check", "i8"),  # value of `nodes` at which the worker checks the node limit next
        ("last_victim", "i8"),  # stack at which the next look for work begins
        ("last_stack", "i8"),  # stack at which the next look for a free one begins
        ("last_lock", "i8"),  # number of the last locked frame for virtual time, -1 none since the driver looked
        ("locks", "i8"),  # locks that the worker holds; only in a build with checks
        ("counters", counters_dtype),
        ("pad", "u1", (32,)),  # `ended` of the outcomes begins a cache line
        ("outcomes", outcomes_dtype),  # outcomes since the last merge
        ("killers", "i4", (MAX_PLY, 2)),
        ("pruned", "i8", (TECHNIQUE_ROOM, 2)),  # by technique: times tried, times it pruned (reduced, extended)
        ("pad_pruned", "u1", (32,)),
        ("evaluation", evaluation_dtype),
    ]
)


# Kinds of events in a worker's log; `psearch.scheduler.trace_log` lists the fields of each kind
TRACE_TAKE, TRACE_JOIN, TRACE_IDLE, TRACE_ABORT, TRACE_SPLIT, TRACE_ROOT = range(1, 7)

ROOT_STOPPED = -1
"""Outcome of a search of the root that was stopped; other outcomes are bounds."""
trace_event_dtype = record(
    [
        ("time", "i8"),  # when the event happened or ended: time stamp counter, or virtual ticks
        ("begin", "i8"),  # when the event began
        ("split", "i8"),  # number of the event's open node, as in `frame_trace_dtype`
        ("value", "i8"),  # nodes searched in vain (TRACE_ABORT); score (TRACE_ROOT); best value (TRACE_SPLIT)
        ("kind", "i4"),
        ("frame", "i4"),  # number of the frame of the event's node, -1 none
        ("depth", "i4"),
        ("type", "i4"),  # expected type of the node
        ("p_needed", "i4"),  # in 1/65536
        ("move", "i4"),  # move taken by the helper (TRACE_JOIN); best move (TRACE_ROOT, TRACE_SPLIT)
        ("helpers", "i4"),  # number of helpers that joined (TRACE_SPLIT)
        # `closed` of the node (TRACE_SPLIT); 1: the value came too late (TRACE_ABORT); bound (TRACE_ROOT)
        ("outcome", "i4"),
    ]
)

trace_log_dtype = record(
    [
        # Stands before the events of a worker, which writes it; the driver in virtual time also writes the clock
        ("count", "i8"),  # atomic; events in the log: an event is complete once it is counted
        ("dropped", "i8"),  # events that found no room
        ("dropped_from", "i8"),  # when the first dropped event happened
        ("clock", "i8"),  # virtual time at which this worker's turn began; -1: use the time stamp counter
        # 1: the log is a ring for live views: the latest events replace the oldest, none is dropped. Parent
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
