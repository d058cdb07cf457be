"""What the kernels of `shadow_kernels` write down: layouts that Python and they share."""

from __future__ import annotations

import numpy as np

from psearch.core.records import MAX_PLY

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
