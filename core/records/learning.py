"""What the search learns about moves."""

from __future__ import annotations

from psearch.core.records.layout import record

MOVED = 1024
"""Values of `piece_to`: board code * 64 + target square."""

learning_dtype = record(
    [
        # By side, from * 64 + to; within +-HISTORY_MAX. Shared by all workers without locks: an update that gets lost
        # changes the order of moves a little, and learning apart costs more nodes (docs/decisions/004).
        ("quiet", "i4", (2, 4096)),
        # The same for a move after another: by `piece_to` of the earlier move, one or two plies before, and of this one
        ("continuation", "i2", (MOVED, MOVED)),
        # Of captures: by `piece_to` and the type of what is taken
        ("capture", "i2", (MOVED, 8)),
    ]
)
