"""What the search learns about moves, and about the static evaluation."""

from __future__ import annotations

from psearch_core.records.layout import record

MOVED = 1024
"""Values of `piece_to`: board code * 64 + target square."""
CORRECTIONS = 1 << 14
"""Entries of a table of corrections, a power of two."""

learning_dtype = record(
    [
        # By side, by whether a move leaves (2) and goes to (1) a square that the other side attacks, and by
        # from * 64 + to; within +-HISTORY_MAX. Shared by all workers without locks: an update that gets lost
        # changes the order of moves a little, and learning apart costs more nodes (docs/decisions/004).
        ("quiet", "i4", (2, 4, 4096)),
        # The same for a move after another: by `piece_to` of the earlier move, one or two plies before, and of this one
        ("continuation", "i2", (MOVED, MOVED)),
        # Of captures: by `piece_to` and the type of what is taken
        ("capture", "i2", (MOVED, 8)),
        # By how much searches differ from the static evaluation (`correction` in `chess/search`), by side to move and a
        # hash; within +-1024
        ("pawn_correction", "i2", (2, CORRECTIONS)),  # of the pawns
        ("piece_correction", "i2", (2, 2, CORRECTIONS)),  # of the pieces of a colour
        ("move_correction", "i2", (2, CORRECTIONS)),  # of the last two moves
    ]
)
