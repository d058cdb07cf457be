"""What the studies call in machine code, and the records that its kernels and Python share."""

from __future__ import annotations

import numpy as np

from psearch.simulation.simulation_entries import VIRTUAL
from psearch_core.records import MAX_PLY
from psearch_core.toolchain.groups import Group

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
    f"psearch_core.chess.{kernel}": f"psearch.lab.studies.shadow_kernels.{stand_in}"
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

VIOLATIONS = 4
"""Violations that a worker keeps for the user to look at; all are counted."""

violation_dtype = np.dtype(
    [
        ("move", "i4"),
        ("value", "i4"),  # what the search found, centipawns, in the node's view
        ("bound", "i4"),  # what sound futility claimed
        ("exact", "i4"),  # M(C) + B from the child's own sums
        ("alpha", "i4"),  # the window it was searched with
        ("ply", "i4"),
        ("line", "u2", (MAX_PLY,)),  # moves from the root to the node, `ply` of them
    ],
    align=True,
)

# one for each worker
shadow_dtype = np.dtype(
    [
        ("checked", "i8"),  # moves that would have been skipped, and were searched
        ("violations", "i8"),  # those of them whose bound was wrong
        ("found", violation_dtype, (VIOLATIONS,)),  # the first of these
    ],
    align=True,
)

# one for each frame
shadow_visit_dtype = np.dtype(
    [
        ("bound", "i4"),  # what the visit's move is worth at most, had it been skipped; NO_SCORE: it had not
        ("again", "i4"),  # 1: the move is searched again, with another window
    ],
    align=True,
)
