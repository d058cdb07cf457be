"""Virtual time: one tick is a picosecond."""

from __future__ import annotations

from psearch.core.records.layout import MAX_WORKERS, record
from psearch.core.records.worker import counters_dtype

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
    ]
)
