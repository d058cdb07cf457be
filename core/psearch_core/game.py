"""The interface between scheduler and game: every kernel of a game that the scheduler calls, with its contract.

`psearch.scheduler` and `psearch.simulation` access a game only through this module. The kernels here call those of
chess; that costs nothing, since LLVM inlines them. A group for another game replaces them by its own kernels
(`Group(replaced=...)`): `psearch.games` does so for a user's game, and tests for an artificial tree
(`tests/support/artificial_kernels.py`).

Terms. *Frame*: the worker's own frame, at `wk.ply` of the stack that it runs. *Node*: the node that a handler works on,
either `frame.node` or a node on another worker's stack, which is then a separate argument. The caller locks an open
node; a handler takes no lock and never waits. *Value*: value of a node for the side to move there, within +-INFINITE;
values beyond `MATE_IN_MAX_PLY` are mates, which the table stores as a distance. *Depth*: plies to go. *Move*: a number
from 1 to 65,535, the same in frame, table and reports; `NO_MOVE` is none.

Of a game's position the scheduler reads only `position.key`, 64 bits that are equal for equal positions; the rest of
the record belongs to the game. Of a node it reads the window, `depth`, `best`, `best_move`, `moves_done`, `stage`,
`tt_bound`, `end`, the line and `cut_index`. A node's types, links and counts of workers belong to the scheduler; a game
must not change them.

A handler may write the node that it is given, the visit of `frame`, the frame above, `wk.value`, `wk.killers`,
`wk.counters`, the path of the worker's stack, the transposition table, and the learning data in the header, which all
share without a lock. It returns `DO_RETURN` (the value is in `wk.value`), `DO_MOVES`, `DO_NULL`, `DO_QUIESCENCE`,
`DO_CHILD` or `DO_CUTOFF`.
"""

from psearch_core.chess.ordering.movepick import PICK_QUIETS as PICK_QUIETS
from psearch_core.chess.search.children import child_depth as chess_child_depth
from psearch_core.chess.search.children import make_child as chess_make_child
from psearch_core.chess.search.children import push_move as chess_push_move
from psearch_core.chess.search.children import push_null as chess_push_null
from psearch_core.chess.search.enter_node import after_move as chess_after_move
from psearch_core.chess.search.enter_node import enter as chess_enter
from psearch_core.chess.search.enter_node import finish as chess_finish
from psearch_core.chess.search.enter_node import learn as chess_learn
from psearch_core.chess.search.next_move import defer_move as chess_defer_move
from psearch_core.chess.search.next_move import next_move as chess_next_move
from psearch_core.chess.search.passes import after_null as chess_after_null
from psearch_core.chess.search.passes import begin_moves as chess_begin_moves
from psearch_core.chess.search.passes import finish_pass as chess_finish_pass
from psearch_core.chess.search.quiescence import after_quiescence as chess_after_quiescence
from psearch_core.chess.search.quiescence import enter_quiescence as chess_enter_quiescence
from psearch_core.chess.search.quiescence import next_quiescence as chess_next_quiescence
from psearch_core.toolchain.jit import kernel
from psearch_core.views import Context, Frame, Node, Position, Tables, Worker, boolean, i64, void

# -- entering a node ------------------------------------------------------------------------------------------------


@kernel(i64(Context, Worker, Frame))
def enter(ctx, wk, frame):
    """Do everything before the first move of `frame.node`, whose position, window and depth are already set.

    DO_RETURN: the value is in `wk.value`; DO_QUIESCENCE: no depth is left, `enter_quiescence` follows; DO_NULL:
    `push_null` follows; DO_MOVES: `begin_moves` follows. Never returns DO_RETURN for the root (ply 0). Sets all fields
    of the node that the scheduler reads, including `tt_bound`. No other worker can see the node yet.
    """
    return chess_enter(ctx, wk, frame)


@kernel(void(Context, Worker, Frame))
def begin_moves(ctx, wk, frame):
    """Set up the move list of `frame.node`: `stage`, `moves_done` 0, `deferred` 0, `pass_kind`. The moves of the root
    come from the stack (`root_moves` from `root_line` on, best first), and `end` is their number."""
    chess_begin_moves(ctx, wk, frame)


# -- moves ----------------------------------------------------------------------------------------------------------


@kernel(i64(Context, Worker, Position, Node, i64))
def next_move(ctx, wk, pos, node, home):
    """Return the next move of a node, or `NO_MOVE` if there is none. home: number of the node's frame.

    Any worker inside an open node may call it, under the node's lock. Moves that `defer_move` took back come last, with
    bit 16 set. Afterwards `node.stage` says where the move comes from: below `PICK_QUIETS` it is a candidate for a
    cutoff. Raises `node.best` and `node.moves_done` for moves that it prunes.
    """
    return chess_next_move(ctx, wk, pos, node, home)


@kernel(boolean(Tables, Position, Node, i64))
def defer_move(tb, pos, node, move):
    """Take back a move that `next_move` gave, to give it again after all others; False if there is no room. Decreases
    `moves_done`. Called under the lock if the node is open."""
    return chess_defer_move(tb, pos, node, move)


@kernel(void(Context, Frame, i64))
def make_child(ctx, frame, move):
    """Make a move in `frame.position`: set the position of the frame above, including `key`. Needs no lock."""
    chess_make_child(ctx, frame, move)


@kernel(i64(Context, Worker, Frame, Node))
def child_depth(ctx, wk, frame, node):
    """Return the depth for the move of `frame.visit`, already made, and set `visit.new_depth` to the depth without
    reductions. A reduced depth is searched first, then `new_depth` if the move seems good. Reads the node without its
    lock."""
    return chess_child_depth(ctx, wk, frame, node)


@kernel(void(Context, Worker, Frame, Node, i64, i64, i64, i64, i64, i64))
def push_move(ctx, wk, frame, node, stage, alpha, beta, depth, split_type, kannan_type):
    """Prepare the frame above to be entered, for the move of `frame.visit`, already made.

    stage, alpha, beta, depth: those of the visit, in the node's view; they go into `frame.visit`, with `resume`. The
    child gets the negated window, the depth, both types, `visit.home` of its own frame, and its entry of the path.
    """
    chess_push_move(ctx, wk, frame, node, stage, alpha, beta, depth, split_type, kannan_type)


@kernel(void(Context, Worker, Frame, Node, i64, i64))
def push_null(ctx, wk, frame, node, split_type, kannan_type):
    """Make a null move after DO_NULL, and prepare the frame above as `push_move` does, with a null window below beta.
    The visit's stage is `VISIT_NULL`."""
    chess_push_null(ctx, wk, frame, node, split_type, kannan_type)


# -- values ---------------------------------------------------------------------------------------------------------


@kernel(i64(Context, Worker, Frame))
def after_null(ctx, wk, frame):
    """Handle the value of a null move, in `wk.value` and in the node's view. Returns DO_RETURN or DO_MOVES."""
    return chess_after_null(ctx, wk, frame)


@kernel(i64(Context, Worker, Frame, Node, i64))
def after_move(ctx, wk, frame, node, value):
    """Update the node by the value of the visit's move, in the node's view. Called under the lock if the node is open;
    the frame above is still the child's.

    DO_CHILD: search the move again with the window, depth and stage in the visit; DO_CUTOFF: the value is at least
    beta; DO_MOVES: continue. Sets `best`, and for a value above alpha also `alpha`, `best_move`, the line, `cut_index`.
    """
    return chess_after_move(ctx, wk, frame, node, value)


@kernel(void(Context, Worker, Frame, Node))
def learn(ctx, wk, frame, node):
    """Learn from the cutoff by the visit's move. Called under the lock if the node is open."""
    chess_learn(ctx, wk, frame, node)


@kernel(i64(Context, Worker, Frame))
def finish_pass(ctx, wk, frame):
    """End a pass over the moves whose `pass_kind` is not `PASS_MAIN`. Returns DO_RETURN, or DO_MOVES with the next pass
    set up. No other worker is inside."""
    return chess_finish_pass(ctx, wk, frame)


@kernel(void(Context, Worker, Frame))
def finish(ctx, wk, frame):
    """Put the value of `frame.node` into `wk.value` and the table. All its moves are done or one caused a cutoff; no
    other worker is inside. Never called for an aborted node."""
    chess_finish(ctx, wk, frame)


@kernel(boolean(Context, Frame))
def is_exhausted(ctx, frame):
    """Tell whether a root's value, found with an open window, is that of the whole game, so that no deeper iteration is
    needed. No other worker is inside."""
    return False  # chess never is


# -- without depth --------------------------------------------------------------------------------------------------


@kernel(i64(Context, Worker, Frame))
def enter_quiescence(ctx, wk, frame):
    """Evaluate a node without depth, which is never opened. Returns DO_RETURN, or DO_MOVES to search captures."""
    return chess_enter_quiescence(ctx, wk, frame)


@kernel(i64(Context, Worker, Frame))
def next_quiescence(ctx, wk, frame):
    """Make the next move of a node without depth and prepare the frame above, to resume in `STATE_QCHILD`. Returns
    DO_CHILD, or DO_RETURN if there is no move."""
    return chess_next_quiescence(ctx, wk, frame)


@kernel(i64(Context, Worker, Frame, i64))
def after_quiescence(ctx, wk, frame, value):
    """Update a node without depth by the value of its move, in the node's view. Returns DO_MOVES or DO_RETURN."""
    return chess_after_quiescence(ctx, wk, frame, value)
