"""A line from the root downwards: what its frames share."""

from __future__ import annotations

from psearch_core.records.info import info_dtype
from psearch_core.records.layout import MAX_MOVES, MAX_PLY, record

path_dtype = record(
    [
        ("key", "u8"),  # of the position at this ply
        ("move", "i4"),  # that led to it; NULL_MOVE after a null move
        ("eval", "i4"),  # static evaluation there
    ]
)

stack_dtype = record(
    [
        ("state", "i8"),  # atomic; STACK_FREE, STACK_ACTIVE, STACK_PARKED. Claimed by compare-and-swap
        # atomic; bit per ply: open, not closed, moves left. Changed under the node's lock
        ("open_mask", "i8", (2,)),
        ("home", "i8"),  # number of the frame of the split node that this stack helps, -1 for the root's stack. Joiner
        ("base", "i8"),  # ply of that split node; 0 for the root's stack. Joiner
        # where it was parked: its former runner has left that node. The one who parks it
        ("parked_ply", "i8"),
        # iterative deepening; meaningful on the stack of a root, but the depth is copied to helpers' stacks
        ("root_depth", "i8"),
        ("root_window", "i8"),  # half width of the aspiration window; by null windows how far the next one goes
        ("root_alpha", "i8"),
        ("root_beta", "i8"),
        ("root_moves", "i4", (MAX_MOVES,)),  # best first; reordered between iterations by the worker at the root
        ("root_line", "i8"),  # MultiPV: lines found at this depth; their moves stand in front and are left out
        ("cutoffs_taken", "i4", (2,)),  # of the split node's stack, behind `base`, when they were last made one with it
        ("root_low", "i8"),  # by null windows: what has been proved of the root at this depth, -INFINITE nothing yet
        ("root_high", "i8"),  # INFINITE nothing yet
        ("root_whole", "i8"),  # whether what is known of the root at this depth rests on the whole of a game
        # nodes searched on this stack by all who have run it, less those of its runner; parked: less nothing. Runner
        ("nodes_before_runner", "i8"),
        ("path", path_dtype, (MAX_PLY,)),  # from the root to here. Joiner copies 0 .. base
        # at this ply, below the node two plies before it: how many nodes a move has cut off. The runner; a helper adds
        # what it has counted to those of the split node's stack
        ("cutoffs", "i4", (MAX_PLY,)),
        # of a root, for the vote (`thread_vote.py`). Runner
        ("finished_depth", "i8"),  # the last depth with an exact score; 0 none
        ("answer", info_dtype),  # what this root has shown, without nodes and selective depth
        ("pad_answer", "u1", (24,)),
    ]
)
