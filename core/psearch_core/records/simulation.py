"""Virtual time: one tick is a picosecond."""

from __future__ import annotations

from psearch_core.records.layout import MAX_WORKERS, record
from psearch_core.records.worker_record import counters_dtype

COLD_NODES = 256
"""After a join, that cost more: `cold` has one entry for each."""

costs_dtype = record(
    [
        ("node", "i8"),  # of the main search
        ("qnode", "i8"),  # of quiescence
        ("open", "i8"),
        ("join", "i8"),  # the whole of a join that succeeds, the copying included
        ("leave", "i8"),  # leaving an open node: park, adopt, or free
        ("lock", "i8"),  # what a node's lock is held for
        ("poll", "i8"),  # a look for work that finds none
        ("poll_stack", "i8"),  # more for each stack of the pool
        ("abort", "i8"),  # noticing a cutoff above
        ("claim", "i8"),  # of a position being searched, the look before and the release after included
        ("jitter", "i8"),  # every cost varies by up to this share, in 1/65536
        # what sharing costs; all zero: locks are held for `lock`, and memory is equally near to all
        ("hold_value", "i8"),  # a node's lock is held beyond `lock`: a value comes in
        ("hold_move", "i8"),  # a move is taken
        ("hold_new_moves", "i8"),  # and moves are generated or sorted for it
        ("hold_learn", "i8"),  # a value cuts the node off
        ("hold_join", "i8"),  # a helper comes and takes a move
        ("handover", "i8"),  # more for a lock that another worker has held last
        ("transfer", "i8"),  # a cache line that another core has written, waited for
        ("poll_line", "i8"),  # of a look for work, each line that was written since the last one
        ("crowd", "i8"),  # share by which a node is longer while another worker is busy, in 1/65536
    ]
)

lock_dtype = record(
    [
        # of a node's frame; zero when the search begins
        ("free", "i8"),  # when it becomes free
        ("holder", "i8"),  # number of the worker that held it last, plus one
    ]
)

simulation_dtype = record(
    [
        ("costs", costs_dtype),
        ("now", "i8"),  # clock of the worker that moved last
        ("deadline", "i8"),  # clock at which the search is stopped; 0 never
        ("random", "u8"),
        ("heap_size", "i8"),
        ("sleepers", "i8"),
        ("events", "i8"),
        ("before", counters_dtype),  # of the worker whose turn it is, when the turn began
        ("base", "i8"),  # what the clocks in the heap count from
        ("heap", "i8", (MAX_WORKERS,)),  # clock - base << WORKER_BITS | worker: ties go to the lower number
        ("sleeping", "i8", (MAX_WORKERS,)),  # workers that wait for an offer, in the order they fell asleep
        ("idle_since", "i8", (MAX_WORKERS,)),
        ("idle_time", "i8", (MAX_WORKERS,)),
        ("cold", "i8", (COLD_NODES,)),  # what a node costs more, by nodes since the worker joined
        ("since_join", "i8", (MAX_WORKERS,)),  # nodes; COLD_NODES: so many or more
        ("changes", "i8"),  # lines that a look for work reads, written so far
        ("window_began", "i8"),  # a window is as long as a look for work, or longer: when the present one began
        ("window_changes", "i8"),  # `changes` then
        ("recent_changes", "i8"),  # in the time of a look for work, in the last window
        ("waited", "i8"),  # time of all workers, for the locks of nodes
        ("idle_changes", "i8"),  # of the word that counts idle workers
        ("idle_seen", "i8", (MAX_WORKERS,)),  # `idle_changes` as the worker last looked
    ]
)
