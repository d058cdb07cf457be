"""A stack, one line from the root downwards: its frames, each with node, visit and position, and what they share."""

from __future__ import annotations

from psearch_core.records.chess import position_dtype
from psearch_core.records.layout import CACHE_LINE, MAX_MOVES, MAX_PLY, record

info_dtype = record(
    [
        ("nodes", "i8"),
        ("depth", "i4"),
        ("seldepth", "i4"),
        ("score", "i4"),
        ("bound", "i4"),  # BOUND_EXACT, BOUND_LOWER, BOUND_UPPER
        ("pv_length", "i4"),
        ("line", "i4"),  # MultiPV: 0 for the best line, 1 for the one without its move, and so on
        ("pv", "i4", (MAX_PLY,)),
    ]
)

node_dtype = record(
    [
        ("lock", "i8"),  # atomic; 0 free, 1 held. Only of nodes that are open, or being opened
        ("open", "i8"),  # atomic; 1 while others may join. Written under the lock
        ("closed", "i8"),  # atomic; 0, CLOSED_CUTOFF or CLOSED_ABORTED. Written under the lock
        ("inside", "i8"),  # workers that hold a visit of this open node. Under the lock
        ("joined", "i8"),  # helpers that ever joined. Under the lock
        ("open_parent", "i8"),  # number of the frame of the nearest open ancestor, -1 none. Owner, at entry
        ("alpha", "i4"),  # rises as moves are searched
        ("beta", "i4"),
        ("entry_alpha", "i4"),  # alpha at entry: tells an exact result from an upper bound
        ("depth", "i4"),  # plies to go; 0 and below is quiescence
        ("split_type", "i4"),  # expected by the policy's rule: PV_NODE, CUT_NODE, ALL_NODE. Steers splitting
        ("best", "i4"),  # best value so far, fail-soft
        ("best_move", "i4"),  # the move that raised alpha or cut; 0 none
        ("eval", "i4"),  # static evaluation, corrected, side to move; NO_SCORE in check
        ("tt_move", "i4"),
        ("killer_1", "i4"),  # copies made at entry, so that every worker inside skips the same moves
        ("killer_2", "i4"),
        ("stage", "i4"),  # of the move picker
        ("cursor", "i4"),  # next entry of `moves`
        ("end", "i4"),  # end of the generated part of `moves`
        ("bad_end", "i4"),  # losing captures are kept in moves[0:bad_end]
        ("moves_done", "i4"),  # moves handed out
        ("in_check", "i4"),
        # a quiet move of at most this value cannot raise alpha; NO_SCORE: no pruning here
        ("futility", "i4"),
        ("priority", "i4"),  # for offers: bigger is more worth joining. Under the lock
        ("cut_index", "i4"),  # number of the move that failed high
        ("p_needed", "i4"),  # probability that the node is needed, in 1/65536. Owner, at entry
        ("deferred", "i4"),  # moves deferred while another worker searches the position; from the end of `moves`
        ("ply", "i4"),
        ("kannan_type", "i4"),  # expected by Kannan's rule, whatever the policy. Steers reductions
        ("estimate", "i4"),  # static evaluation, or the table's score where its bound is on the right side of it
        ("improving", "i4"),  # 1: the static evaluation has risen since this side's last move
        ("tt_score", "i4"),  # of the entry found at entry, NO_SCORE without one
        ("tt_depth", "i4"),
        ("tt_bound", "i4"),  # BOUND_NONE without one
        ("pass_kind", "i4"),  # PASS_ENTRY .. PASS_MAIN: what the present pass over the moves is for
        ("full_alpha", "i4"),  # window and depth of the node itself, while a pass searches it with others
        ("full_beta", "i4"),
        ("full_depth", "i4"),
        ("extension", "i4"),  # plies more for the table's move, as the singular search found
        ("extended", "i4"),  # 1: the move that led here was extended
        ("skip", "i4"),  # SKIP_NOTHING, SKIP_QUIETS, SKIP_ALL_QUIETS: from here on. Under the lock
        ("see_threshold", "i4"),  # PASS_PROBCUT: what a capture must win
        ("cont_1", "i4"),  # piece and target of the move that led here, and of the one before: `piece_to`; 0 none
        ("cont_2", "i4"),
        ("threats", "u8"),  # squares that the other side attacks
        ("helped_nodes", "i8"),  # below this node, by others than who runs its stack. Runner; under the lock once open
        ("raw_eval", "i4"),  # static evaluation as evaluated: what the table keeps
        ("pv_length", "i4"),
        ("moves", "i4", (MAX_MOVES,)),  # score << 16 | move; owner, or under the lock once open
        ("pv", "i4", (MAX_PLY,)),  # line below this node, this node's move first; as for `best`
    ]
)

visit_dtype = record(
    [
        ("home", "i8"),  # number of the frame whose node this visit works on: this one, or a helper's split node
        ("move", "i4"),  # the move being searched
        ("index", "i4"),  # its number at the node, from 0
        ("stage", "i2"),  # VISIT_NULL, VISIT_REDUCED, VISIT_SCOUT, VISIT_FULL
        ("deferred", "i2"),  # 1: the move was deferred once, and is not again
        ("alpha", "i4"),  # the window the child is searched with, in the node's view
        ("beta", "i4"),
        ("depth", "i4"),  # of the child
        ("resume", "i4"),  # worker state that takes the child's value
        ("nodes_before", "i8"),  # of the stack (`stack_nodes`) when the move was begun: what it has taken
        ("p_needed", "i4"),  # of the child, in 1/65536
        ("shared", "i4"),  # 1: taken while others were inside the node
        ("new_depth", "i4"),  # of the child without reduction: for the search that follows if a reduced one fails high
        ("picked", "i4"),  # stage of the picker when the move was taken
        ("claim", "u8"),  # of the child's position in the table of positions being searched; 0 none
        ("under_way", "i4"),  # other moves of the node that were being searched when it was taken
    ]
)

# In the time of the trace's clock (`trace_log_dtype`), and written only while a trace is recorded
frame_trace_dtype = record(
    [
        ("opened", "i8"),  # when the node was opened. Under the lock
        ("split", "i8"),  # openings by the worker before << WORKER_BITS | worker: the node's number. Under the lock
        ("began", "i8"),  # when the visit's move was taken, at an open node. Runner of the stack
        ("entered", "i8"),  # of a root: when the present search of it began. Runner of the stack
    ]
)

frame_dtype = record(
    [
        ("node", node_dtype),
        ("visit", visit_dtype),  # private to the worker that runs the stack
        # Helpers read the position of a split node while its visit changes: on a line of its own, so there is room for
        # 72 bytes here. An odd number of lines per frame spreads the frames over the cache sets.
        ("trace", frame_trace_dtype),
        # 1: the node's value rests on a position that was evaluated before the game was over. Not chess; as for `best`
        ("horizon", "i8"),
        ("pad", "u1", (32,)),
        ("position", position_dtype),  # written when the frame is entered, then only read
    ]
)

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

FRAME_SIZE, STACK_SIZE = frame_dtype.itemsize, stack_dtype.itemsize
if FRAME_SIZE % (2 * CACHE_LINE) != CACHE_LINE or STACK_SIZE % CACHE_LINE:
    raise AssertionError(f"record sizes: frame {FRAME_SIZE}, stack {STACK_SIZE}")
