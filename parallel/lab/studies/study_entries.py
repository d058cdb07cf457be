"""What the studies call in machine code."""

from __future__ import annotations

from psearch.core.toolchain.groups import Group
from psearch.simulation.simulation_entries import VIRTUAL

UNIFORM_TREE = Group("uniform_tree", "psearch.lab.studies.uniform_kernels")
search_uniform = UNIFORM_TREE.entry("search_uniform")

ONE_TREE = Group(
    "one_tree",
    *VIRTUAL.recipe.modules,
    replaced={
        **VIRTUAL.recipe.replaced,
        "psearch.scheduler.policy.may_open": "psearch.lab.studies.one_tree.may_open_as_kannan",
        "psearch.scheduler.policy.open_priority": "psearch.lab.studies.one_tree.priority_as_kannan",
    },
)
"""Virtual time in which every policy opens the nodes that `kannan` opens."""

SHADOWED = {
    f"psearch.core.chess.{kernel}": f"psearch.lab.studies.shadow_kernels.{stand_in}"
    for kernel, stand_in in (
        ("pruning.sound.skips_soundly", "skips_nothing"),
        ("search.children.set_child", "set_child_noting"),
        ("search.enter_node.after_move", "after_move_checking"),
        ("search.quiescence.after_quiescence", "after_quiescence_checking"),
    )
}
"""What searches all that sound futility would skip, and checks it."""
SHADOW = Group("shadow", "psearch.scheduler.work", replaced=SHADOWED)
work_in_shadow = SHADOW.entry("work")
