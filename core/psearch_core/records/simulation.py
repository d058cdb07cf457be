"""Records of a simulation in virtual time; one tick is a picosecond."""

from psearch_core.records.layout import MAX_WORKERS, record
from psearch_core.records.worker_record import counters_dtype

COLD_NODES = 256
"""Number of nodes after a join that cost more because caches are cold; `cold` has one entry for each."""

costs_dtype = record(
    [
        ("node", "i8"),  # node of the main search
        ("qnode", "i8"),  # node of quiescence
        ("open", "i8"),
        ("join", "i8"),  # join that succeeds, including copying
        ("leave", "i8"),  # leaving an open node: park, adopt, or free
        ("lock", "i8"),  # time for which a node's lock is held
        ("poll", "i8"),  # look for work that finds none
        ("poll_stack", "i8"),  # additional time of a look for each stack of the pool
        ("abort", "i8"),  # noticing a cutoff above
        ("claim", "i8"),  # claim of a position, including the look before and the release after
        ("jitter", "i8"),  # greatest random variation of every cost, in 1/65536
        # costs of sharing; if all are zero, locks are held for `lock`, and memory is equally near to all workers
        ("hold_value", "i8"),  # additional time for which a node's lock is held: to handle a value
        ("hold_move", "i8"),  # to take a move
        ("hold_new_moves", "i8"),  # to generate or sort moves before one is taken
        ("hold_learn", "i8"),  # to learn from a cutoff
        ("hold_join", "i8"),  # to let a helper join and take a move
        ("handover", "i8"),  # additional time to take a lock that another worker held last
        ("transfer", "i8"),  # wait for a cache line that another core has written
        ("poll_line", "i8"),  # look for work: each cache line that was written since the last look
        ("crowd", "i8"),  # share by which a node takes longer while another worker is busy, in 1/65536
    ]
)

lock_dtype = record(
    [
        # one for each frame; zero when the search begins
        ("free", "i8"),  # when the lock becomes free
        ("holder", "i8"),  # number of the worker that held the lock last, plus one
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
        ("before", counters_dtype),  # counters of the worker whose turn it is, when the turn began
        ("base", "i8"),  # clock from which the clocks in the heap count
        ("heap", "i8", (MAX_WORKERS,)),  # clock - base << WORKER_BITS | worker: ties go to the lower number
        ("sleeping", "i8", (MAX_WORKERS,)),  # workers that wait for an offer, in the order they fell asleep
        ("idle_since", "i8", (MAX_WORKERS,)),
        ("idle_time", "i8", (MAX_WORKERS,)),
        ("cold", "i8", (COLD_NODES,)),  # additional cost of a node, by nodes since the worker joined
        ("since_join", "i8", (MAX_WORKERS,)),  # nodes since the last join, at most COLD_NODES
        ("changes", "i8"),  # writes so far to the cache lines that a look for work reads
        ("window_began", "i8"),  # when the present window began, which is at least as long as a look for work
        ("window_changes", "i8"),  # `changes` when the window began
        ("recent_changes", "i8"),  # changes in the time of a look for work, averaged over the last window
        ("waited", "i8"),  # time that all workers have waited for the locks of nodes
        ("idle_changes", "i8"),  # changes of the word that counts idle workers
        ("idle_seen", "i8", (MAX_WORKERS,)),  # `idle_changes` when the worker looked last
    ]
)
