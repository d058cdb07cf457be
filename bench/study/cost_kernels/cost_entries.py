"""What the measurements of costs call in machine code."""

from __future__ import annotations

from psearch_core.toolchain.groups import Group

MICRO_COSTS = Group("micro_costs", "cost_kernels.micro_costs", "cost_kernels.timed_nodes")
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
