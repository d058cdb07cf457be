"""The one door between scheduler and game: every kernel of a game that the scheduler calls, with its contract.

`psearch.scheduler` and `psearch.simulation` know no game but through this module. What stands here forwards to chess,
and costs nothing: LLVM makes one function of both. A group of kernels for another game replaces what stands here by
kernels of its own (`Group(replaced=...)`): `psearch.games` does, for a user's game, and tests do, for an artificial
tree (`tests/support/artificial_kernels.py`).

Words. *Frame*: the worker's own, at `wk.ply` of the stack that it runs. *Node*: the one a handler works on; it is
`frame.node`, or lies on another worker's stack, and is an argument of its own then. A node that is open is locked by
the caller; a handler takes no lock and never waits. *Value*: of a node, for the side to move there, within
+-INFINITE; scores beyond `MATE_IN_MAX_PLY` are mates, which the table keeps as a distance. *Depth*: plies to go.
*Move*: 1 to 65,535, the same in frame, table and reports; `NO_MOVE` is none.

What the scheduler reads of a game's position is `position.key`, 64 bits, equal for equal positions; the rest of the
record is the game's. Of a node it reads window, `depth`, `best`, `best_move`, `moves_done`, `stage`, `tt_bound`, `end`,
line, `cut_index`; types, links and counts of those inside are the scheduler's own, and a game leaves them alone.

A handler may write: the node that it is given, the visit of `frame`, the frame above, `wk.value`, `wk.killers`,
`wk.counters`, the path of the worker's stack, the transposition table, and what is learnt in the header, which all
share without a lock. It answers with one of `DO_RETURN` (the value is in `wk.value`), `DO_MOVES`, `DO_NULL`,
`DO_QUIESCENCE`, `DO_CHILD`, `DO_CUTOFF`.
"""

from __future__ import annotations

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
    """Do everything before the first move of `frame.node`, whose position, window and depth are there.

    DO_RETURN: the value is in `wk.value`; DO_QUIESCENCE: no depth is left, `enter_quiescence` follows; DO_NULL: pass
    first (`push_null`); DO_MOVES: `begin_moves` follows. The root (ply 0) is never returned from. Sets all fields of
    the node that the scheduler reads, `tt_bound` among them. No other worker can see the node yet.
    """
    return chess_enter(ctx, wk, frame)


@kernel(void(Context, Worker, Frame))
def begin_moves(ctx, wk, frame):
    """Set up the list of moves of `frame.node`: `stage`, `moves_done` 0, `deferred` 0, `pass_kind`. At the root the
    moves come from the stack (`root_moves` from `root_line` on, best first), and `end` is their number."""
    chess_begin_moves(ctx, wk, frame)


# -- moves ----------------------------------------------------------------------------------------------------------


@kernel(i64(Context, Worker, Position, Node, i64))
def next_move(ctx, wk, pos, node, home):
    """Return the next move of a node, `NO_MOVE` when there is none. home: number of the node's frame.

    Under the node's lock if it is open: any worker inside may call it. A move that was given back by `defer_move` comes
    last, with bit 16 set. `node.stage` says afterwards where the move comes from: below `PICK_QUIETS` it is a candidate
    for a cutoff. Raises `node.best` and `node.moves_done` for moves that it leaves out.
    """
    return chess_next_move(ctx, wk, pos, node, home)


@kernel(boolean(Tables, Position, Node, i64))
def defer_move(tb, pos, node, move):
    """Take a move back that `next_move` gave, to be given again when no other is left; False where there is no room.
    Under the lock if the node is open. Takes it off `moves_done`."""
    return chess_defer_move(tb, pos, node, move)


@kernel(void(Context, Frame, i64))
def make_child(ctx, frame, move):
    """Make a move: from `frame.position` the position of the frame above, `key` included. No lock."""
    chess_make_child(ctx, frame, move)


@kernel(i64(Context, Worker, Frame, Node))
def child_depth(ctx, wk, frame, node):
    """Return the depth for the move of `frame.visit`, already made; without reductions it goes into
    `visit.new_depth`. Less than that is searched first, then `new_depth` if the move seems good. Reads the node without
    its lock."""
    return chess_child_depth(ctx, wk, frame, node)


@kernel(void(Context, Worker, Frame, Node, i64, i64, i64, i64, i64, i64))
def push_move(ctx, wk, frame, node, stage, alpha, beta, depth, split_type, kannan_type):
    """Prepare the frame above to be entered, for the move of `frame.visit`, already made.

    stage, alpha, beta, depth: of the visit, in the node's view; they go into `frame.visit`, with `resume`. The child
    gets the window turned round, the depth, both types, `visit.home` of its own frame, and its entry of the path.
    """
    chess_push_move(ctx, wk, frame, node, stage, alpha, beta, depth, split_type, kannan_type)


@kernel(void(Context, Worker, Frame, Node, i64, i64))
def push_null(ctx, wk, frame, node, split_type, kannan_type):
    """After DO_NULL: pass, and prepare the frame above as `push_move` does, with a null window below beta. The visit's
    stage is `VISIT_NULL`."""
    chess_push_null(ctx, wk, frame, node, split_type, kannan_type)


# -- values ---------------------------------------------------------------------------------------------------------


@kernel(i64(Context, Worker, Frame))
def after_null(ctx, wk, frame):
    """Take the value after passing, in `wk.value` and in the node's view: DO_RETURN, or DO_MOVES with the moves set
    up."""
    return chess_after_null(ctx, wk, frame)


@kernel(i64(Context, Worker, Frame, Node, i64))
def after_move(ctx, wk, frame, node, value):
    """Take the value of the visit's move, in the node's view, into the node. Under the lock if the node is open; the
    child's frame is still the one above.

    DO_CHILD: search the move again with window, depth and stage left in the visit; DO_CUTOFF: at least beta;
    DO_MOVES: go on. Changes `best`, and with a value above alpha `alpha`, `best_move`, the line, `cut_index`.
    """
    return chess_after_move(ctx, wk, frame, node, value)


@kernel(void(Context, Worker, Frame, Node))
def learn(ctx, wk, frame, node):
    """Learn from the cutoff by the visit's move. Under the lock if the node is open."""
    chess_learn(ctx, wk, frame, node)


@kernel(i64(Context, Worker, Frame))
def finish_pass(ctx, wk, frame):
    """End a walk over the moves whose `pass_kind` is not `PASS_MAIN`: DO_RETURN, or DO_MOVES with the next set up.
    Nobody else is inside."""
    return chess_finish_pass(ctx, wk, frame)


@kernel(void(Context, Worker, Frame))
def finish(ctx, wk, frame):
    """Put the value of `frame.node` into `wk.value` and into the table. All its moves are done, or one has cut off, and
    nobody else is inside; never called for a node that was aborted."""
    chess_finish(ctx, wk, frame)


@kernel(boolean(Context, Frame))
def is_exhausted(ctx, frame):
    """Tell whether a root's value, found with an open window, is that of the whole game: no deeper iteration follows.
    Nobody else is inside."""
    return False  # chess is not


# -- without depth --------------------------------------------------------------------------------------------------


@kernel(i64(Context, Worker, Frame))
def enter_quiescence(ctx, wk, frame):
    """Evaluate a node without depth: DO_RETURN, or DO_MOVES when captures have to be looked at first. Such a node is
    never opened."""
    return chess_enter_quiescence(ctx, wk, frame)


@kernel(i64(Context, Worker, Frame))
def next_quiescence(ctx, wk, frame):
    """Make the next move of a node without depth and prepare the frame above, with `STATE_QCHILD` to resume in:
    DO_CHILD. DO_RETURN when there is none."""
    return chess_next_quiescence(ctx, wk, frame)


@kernel(i64(Context, Worker, Frame, i64))
def after_quiescence(ctx, wk, frame, value):
    """Take the value of such a move, in the node's view, into the node: DO_MOVES or DO_RETURN."""
    return chess_after_quiescence(ctx, wk, frame, value)
