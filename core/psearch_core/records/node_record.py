"""Records of a stack, which holds one line from the root downwards, and of its frames: node, visit and position."""

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
        ("line", "i4"),  # number of the line (MultiPV), 0 for the best one
        ("share", "i4"),  # share of the root's nodes below the first move of `pv`, in thousandths; -1 not known well
        ("pv", "i4", (MAX_PLY,)),
    ]
)

node_dtype = record(
    [
        ("lock", "i8"),  # atomic; 0 free, 1 held. Used only while the node is open or being opened
        ("open", "i8"),  # atomic; 1 while others may join. Written under the lock
        ("closed", "i8"),  # atomic; 0, CLOSED_CUTOFF or CLOSED_ABORTED. Written under the lock
        ("inside", "i8"),  # number of workers that have a visit at this open node. Under the lock
        ("joined", "i8"),  # number of helpers that have joined. Under the lock
        ("open_parent", "i8"),  # number of the frame of the nearest open ancestor, -1 none. Owner, at entry
        ("alpha", "i4"),  # rises as moves are searched
        ("beta", "i4"),
        ("entry_alpha", "i4"),  # alpha at entry: distinguishes an exact result from an upper bound
        ("depth", "i4"),  # plies to go; 0 and below is quiescence
        ("split_type", "i4"),  # expected by the policy's rule: PV_NODE, CUT_NODE, ALL_NODE. Steers splitting
        ("best", "i4"),  # best value so far, fail-soft
        ("best_move", "i4"),  # the move that raised alpha or cut; 0 none
        ("eval", "i4"),  # static evaluation, corrected, side to move; NO_SCORE in check
        ("tt_move", "i4"),
        ("killer_1", "i4"),  # killers copied at entry, so that every worker inside skips the same moves
        ("killer_2", "i4"),
        ("stage", "i4"),  # stage of the move picker
        ("cursor", "i4"),  # next entry of `moves`
        ("end", "i4"),  # end of the generated part of `moves`
        ("bad_end", "i4"),  # losing captures are kept in moves[0:bad_end]
        ("moves_done", "i4"),  # number of moves taken by workers
        ("in_check", "i4"),
        # best value that a quiet move may reach; it is pruned if that is not above alpha. NO_SCORE: no pruning
        ("futility", "i4"),
        ("priority", "i4"),  # priority of the offer: helpers join the node with the greatest. Under the lock
        ("cut_index", "i4"),  # number of the move that failed high
        ("p_needed", "i4"),  # probability that the node is needed, in 1/65536. Owner, at entry
        ("deferred", "i4"),  # number of moves deferred while others search their positions; at the end of `moves`
        ("ply", "i4"),
        ("kannan_type", "i4"),  # type expected by Kannan's rule under every policy. Steers reductions
        ("estimate", "i4"),  # static evaluation, or the table's score if its bound improves on it
        ("improving", "i4"),  # 1: the static evaluation has risen since this side's last move
        ("tt_score", "i4"),  # score of the table entry found at entry; NO_SCORE without one
        ("tt_depth", "i4"),
        ("tt_bound", "i4"),  # bound of the table entry; BOUND_NONE without one
        ("pass_kind", "i4"),  # PASS_ENTRY .. PASS_MAIN: purpose of the current pass over the moves
        ("full_alpha", "i4"),  # window and depth of the node, saved while a pass searches it with others
        ("full_beta", "i4"),
        ("full_depth", "i4"),
        ("extension", "i4"),  # plies by which the singular search extends the table's move
        ("extended", "i4"),  # 1: the move that led here was extended
        ("skip", "i4"),  # moves to skip from now on: SKIP_NOTHING, SKIP_QUIETS, SKIP_ALL_QUIETS. Under the lock
        ("see_threshold", "i4"),  # least gain of a capture in PASS_PROBCUT
        ("cont_1", "i4"),  # `piece_to` of the move that led here (below: of the one before); 0 none
        ("cont_2", "i4"),
        ("threats", "u8"),  # squares that the other side attacks
        # found by `find_checks` when the first quiet move is judged, U0 before
        ("straight_checks", "u8"),  # squares from which a rook would give check
        ("diagonal_checks", "u8"),  # squares from which a bishop would give check
        ("discoverers", "u8"),  # own pieces that stand alone between the other king and an own slider
        ("helped_nodes", "i8"),  # nodes that helpers searched below this node. Runner; under the lock once open
        ("raw_eval", "i4"),  # static evaluation without correction, as the table stores it
        ("pv_length", "i4"),
        ("moves", "i4", (MAX_MOVES,)),  # score << 16 | move; owner, or under the lock once open
        ("pv", "i4", (MAX_PLY,)),  # principal line from this node on; written like `best`
    ]
)

visit_dtype = record(
    [
        ("home", "i8"),  # number of the frame whose node this visit works on: this frame, or a helper's split node
        ("move", "i4"),  # move being searched
        ("index", "i4"),  # number of the move at the node, from 0
        ("stage", "i2"),  # VISIT_NULL, VISIT_REDUCED, VISIT_SCOUT, VISIT_FULL
        ("deferred", "i2"),  # 1: the move was deferred once and must be searched now
        ("alpha", "i4"),  # window of the child's search, in the node's view
        ("beta", "i4"),
        ("depth", "i4"),  # depth of the child's search
        ("resume", "i4"),  # worker state that handles the child's value
        ("nodes_before", "i8"),  # nodes of the stack (`stack_nodes`) when the move was begun
        ("p_needed", "i4"),  # probability that the child is needed, in 1/65536
        ("shared", "i4"),  # 1: the move was taken while others were inside the node
        ("new_depth", "i4"),  # depth of the child without reduction, searched if the reduced search fails high
        ("picked", "i4"),  # stage of the picker when the move was taken
        ("claim", "u8"),  # claim of the child's position in the table of positions being searched; 0 none
        ("under_way", "i4"),  # number of other moves of the node that were being searched when it was taken
    ]
)

# Times are those of the trace's clock (`trace_log_dtype`); written only while a trace is recorded
frame_trace_dtype = record(
    [
        ("opened", "i8"),  # when the node was opened. Under the lock
        ("split", "i8"),  # number of the open node: opens of its worker << WORKER_BITS | worker. Under the lock
        ("began", "i8"),  # when the visit's move was taken, at an open node. Runner of the stack
        ("entered", "i8"),  # when the current search of a root began. Runner of the stack
    ]
)

frame_dtype = record(
    [
        ("node", node_dtype),
        ("visit", visit_dtype),  # private to the worker that runs the stack
        # Helpers read the position of a split node while its visit changes, so the position begins a cache line, and 48
        # bytes are free before it. An odd number of lines per frame spreads the frames over the cache sets.
        ("trace", frame_trace_dtype),
        # 1: the node's value depends on an evaluation, not only on ends of the game. Not in chess; written like `best`
        ("horizon", "i8"),
        ("pad", "u1", (8,)),
        ("position", position_dtype),  # written when the frame is entered, then only read
    ]
)

path_dtype = record(
    [
        ("key", "u8"),  # key of the position at this ply
        ("move", "i4"),  # move that led to the position; NULL_MOVE after a null move
        ("eval", "i4"),  # static evaluation of the position
    ]
)

stack_dtype = record(
    [
        ("state", "i8"),  # atomic; STACK_FREE, STACK_ACTIVE, STACK_PARKED. Claimed by compare-and-swap
        # atomic; one bit per ply: the node is open, not closed, and has moves left. Changed under the node's lock
        ("open_mask", "i8", (2,)),
        ("home", "i8"),  # number of the frame of the split node that this stack helps, -1 for the root's stack. Joiner
        ("base", "i8"),  # ply of that split node; 0 for the root's stack. Joiner
        # ply of the node at which the stack was parked. Written by the worker that parks it
        ("parked_ply", "i8"),
        # iterative deepening; meaningful only on the stack of a root, but helpers' stacks get a copy of the depth
        ("root_depth", "i8"),
        ("root_window", "i8"),  # half width of the aspiration window; with null windows the distance of the next one
        ("root_alpha", "i8"),
        ("root_beta", "i8"),
        ("root_moves", "i4", (MAX_MOVES,)),  # best first; reordered between iterations by the worker at the root
        ("root_line", "i8"),  # lines found at this depth (MultiPV); their moves come first and are not searched again
        ("cutoffs_taken", "i4", (2,)),  # `cutoffs` of the split node's stack after `base`, when last exchanged
        ("root_low", "i8"),  # lower bound of the root proved by null windows at this depth, -INFINITE before the first
        ("root_high", "i8"),  # upper bound of the root, INFINITE before the first
        ("root_whole", "i8"),  # whether the root's bounds at this depth come from searching the whole game
        # nodes searched on this stack by all its runners, minus all nodes of the present runner (if any). Runner
        ("nodes_before_runner", "i8"),
        ("path", path_dtype, (MAX_PLY,)),  # positions from the root to here. Joiner copies 0 .. base
        # number of nodes at this ply, below the node two plies before, that a move has cut off. Runner; a helper adds
        # its counts to those of the split node's stack
        ("cutoffs", "i4", (MAX_PLY,)),
        # for the vote of roots (`thread_vote.py`). Runner
        ("finished_depth", "i8"),  # last depth with an exact score; 0 none
        ("answer", info_dtype),  # answer of this root, without nodes and selective depth
        ("pad_answer", "u1", (16,)),
    ]
)

FRAME_SIZE, STACK_SIZE = frame_dtype.itemsize, stack_dtype.itemsize
if FRAME_SIZE % (2 * CACHE_LINE) != CACHE_LINE or STACK_SIZE % CACHE_LINE:
    raise AssertionError(f"record sizes: frame {FRAME_SIZE}, stack {STACK_SIZE}")
