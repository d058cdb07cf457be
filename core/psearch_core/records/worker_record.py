"""What belongs to one worker."""

from __future__ import annotations

from psearch_core.records.evaluation import evaluation_dtype
from psearch_core.records.layout import MAX_PLY, record
from psearch_core.records.prediction_record import outcomes_dtype
from psearch_core.records.pruning_record import TECHNIQUES

TECHNIQUE_ROOM = 32
OWN_RULE = TECHNIQUE_ROOM - 1
"""The place of what a user's file counts."""
"""For the counts of techniques."""
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
