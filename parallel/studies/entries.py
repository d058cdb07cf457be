"""What the studies call in machine code."""

from __future__ import annotations

from psearch.core.kernels import Group
from psearch.simulation.entries import VIRTUAL

UNIFORM_TREE = Group("uniform_tree", "psearch.studies.uniform_kernels")
search_uniform = UNIFORM_TREE.entry("search_uniform")

ONE_TREE = Group(
    "one_tree",
    *VIRTUAL.modules,
    replaced={
        **VIRTUAL.replaced,
        "psearch.scheduler.policy.opening_policy": "psearch.studies.one_tree.kannan_policy",
        "psearch.scheduler.policy.opening_type": "psearch.studies.one_tree.kannan_type",
    },
)
"""Virtual time in which every policy opens the nodes that `kannan` opens."""

MICRO_COSTS = Group("micro_costs", "psearch.studies.micro_costs", "psearch.studies.timed_nodes")
search_timing_nodes = MICRO_COSTS.entry("search_timing_nodes")
search_in_turns_timing_nodes = MICRO_COSTS.entry("search_in_turns_timing_nodes")

TIMED_LOCKS = Group(
    "timed_locks",
    "psearch.studies.timed_locks",
    replaced={
        "psearch.scheduler.splitting.acquire": "psearch.studies.timed_locks.acquire_timed",
        "psearch.scheduler.splitting.try_acquire": "psearch.studies.timed_locks.try_acquire_timed",
        "psearch.scheduler.splitting.release": "psearch.studies.timed_locks.release_timed",
    },
)
search_timing_locks = TIMED_LOCKS.entry("search_timing_locks")

SHADOWED = {
    f"psearch.core.{kernel}": f"psearch.studies.shadow_kernels.{stand_in}"
    for kernel, stand_in in (
        ("pruning.sound.skips_soundly", "skips_nothing"),
        ("search.children.set_child", "set_child_noting"),
        ("search.node.after_move", "after_move_checking"),
        ("search.quiescence.after_quiescence", "after_quiescence_checking"),
    )
}
"""What searches all that sound futility would skip, and checks it."""
SHADOW = Group("shadow", "psearch.scheduler.work", replaced=SHADOWED)
work_in_shadow = SHADOW.entry("work")
