"""Kernels with which `calibrate.py` measures what virtual time charges: their groups, and layouts that Python shares.

`micro_costs` are loops around single operations, and searches that time their nodes; `timed_locks` is a search that
times its locks.
"""

from __future__ import annotations

import numpy as np

from psearch_core.toolchain.groups import Group

MICRO_COSTS = Group("micro_costs", "cost_kernels.micro_costs")
search_timing_nodes = MICRO_COSTS.entry("search_timing_nodes")
search_in_turns_timing_nodes = MICRO_COSTS.entry("search_in_turns_timing_nodes")

TIMED_LOCKS = Group(
    "timed_locks",
    "cost_kernels.timed_locks",
    replaced={
        "psearch.scheduler.splitting.acquire": "cost_kernels.timed_locks.acquire_timed",
        "psearch.scheduler.splitting.try_acquire": "cost_kernels.timed_locks.try_acquire_timed",
        "psearch.scheduler.splitting.release": "cost_kernels.timed_locks.release_timed",
    },
)
search_timing_locks = TIMED_LOCKS.entry("search_timing_locks")

LONG_SINCE = 256
"""Nodes are told apart by how many a worker has searched since it joined; those after so many are not."""
HELD_FOR_VALUE, HELD_FOR_MOVE, HELD_FOR_NEW_MOVES, HELD_FOR_LEARN, HELD_TO_JOIN, HELD_TO_OPEN = range(6)
"""Reasons for which a node's lock is held: a value came in, a failed join, a leave; a move was taken; and some were
generated or sorted for it; a value cut the node off, and histories learnt from it; a helper joined; the node was
opened."""
LOCK_KINDS = 6

node_times_dtype = np.dtype(
    [
        ("since", "i8"),  # nodes since the last join, LONG_SINCE at most
        ("disturbed", "i8"),  # nodes that took longer than anything should
        # by nodes since the last join, and main search or quiescence; cycles of the time stamp counter
        ("count", "i8", (LONG_SINCE + 1, 2)),
        ("cycles", "i8", (LONG_SINCE + 1, 2)),
    ],
    align=True,
)

lock_times_dtype = np.dtype(
    [
        # of the lock that is held: as it was taken
        ("began", "i8"),
        ("waited", "i8"),
        ("other", "i8"),  # 1: another worker held it last
        ("spins", "i8"),
        ("was_open", "i8"),
        ("closed", "i8"),
        ("stage", "i8"),
        ("moves_done", "i8"),
        ("joined", "i8"),
        # of all
        ("longest", "i8"),  # cycles; what takes longer was disturbed
        ("contended", "i8"),  # locks that had to be waited for; in no other figure
        ("count", "i8", (LOCK_KINDS, 2)),  # by kind, and whether another worker held it last
        ("held", "i8", (LOCK_KINDS, 2)),  # cycles of the time stamp counter
        ("taken", "i8", (LOCK_KINDS, 2)),  # the same, until it was had
        ("pad", "i8", (1,)),  # whole cache lines
    ],
    align=True,
)
