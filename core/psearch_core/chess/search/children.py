"""Sets up the child of a move or of a null move: its position, window, depth and line."""

from psearch_core.chess.board.attacks import move_to
from psearch_core.chess.board.position import make_move, make_null
from psearch_core.chess.evaluation.network import prefetch_rows
from psearch_core.chess.ordering.history import piece_to
from psearch_core.chess.pruning.counters import count_tried
from psearch_core.chess.pruning.node_pruning import null_reduction
from psearch_core.chess.search.decisions import extension_of, reduction_of
from psearch_core.chess.search.tt import prefetch_entry
from psearch_core.constants import NULL_MOVE, STATE_CHILD, U0, VISIT_NULL
from psearch_core.records import FRAME_SIZE, MAX_PLY
from psearch_core.techniques import LMR
from psearch_core.toolchain.intrinsics import address, check
from psearch_core.toolchain.jit import kernel
from psearch_core.views import Context, Frame, Node, Worker, above, boolean, header_of, i64, stack_of, tables_of, void

_LONGEST_LINE = 2
"""Length of a line, in multiples of the iteration's depth, beyond which no move is extended."""


@kernel(i64(Context, Frame))
def frame_number(ctx, frame):
    """Return the number of a frame in the arena."""
    return (address(frame) - ctx.frames) // FRAME_SIZE


@kernel(void(Context, Worker, Frame, i64, i64, i64, i64, i64))
def link_child(ctx, wk, frame, alpha, beta, depth, split_type, kannan_type):
    """Prepare the frame above for entry, in any game; its position is already set. The window is in the child's view.
    split_type, kannan_type: expected types of the child."""
    check(wk.ply + 1 < MAX_PLY, "a child has a frame on the stack")
    check(alpha < beta, "a child is searched with a window")
    child = above(frame)
    entered = child.node
    entered.alpha = alpha
    entered.beta = beta
    entered.depth = depth
    entered.split_type = split_type
    entered.kannan_type = kannan_type
    child.visit.home = frame_number(ctx, frame) + 1
    path = stack_of(ctx, wk.stack).path
    path[wk.ply + 1].key = child.position.key
    path[wk.ply + 1].move = frame.visit.move


@kernel(void(Context, Worker, Frame, Node, i64, i64, i64, i64, i64))
def set_child(ctx, wk, frame, node, alpha, beta, depth, split_type, kannan_type):
    """Prepare the frame above for entry in chess, with the last moves for the histories. node: the move's node."""
    link_child(ctx, wk, frame, alpha, beta, depth, split_type, kannan_type)
    entered = above(frame).node
    entered.cont_2 = node.cont_1
    move = frame.visit.move
    entered.cont_1 = 0 if move == NULL_MOVE else piece_to(frame.position, move)


@kernel(void(Context, Worker, Frame, Node, i64, i64))
def push_null(ctx, wk, frame, node, split_type, kannan_type):
    """Make a null move, and prepare its search with a null window below beta, R plies less deep."""
    reduction = null_reduction(header_of(ctx).options.pruning, frame.position, node)
    frame.visit.move = NULL_MOVE
    frame.visit.stage = VISIT_NULL
    frame.visit.resume = STATE_CHILD
    child = above(frame)
    make_null(tables_of(ctx), frame.position, child.position)
    prefetch_entry(ctx, child.position.key)
    child.node.extended = 0
    beta = node.beta
    depth = max(node.depth - reduction - 1, 0)  # a negative depth would be the spent budget of quiescence
    set_child(ctx, wk, frame, node, -beta, 1 - beta, depth, split_type, kannan_type)


@kernel(void(Context, Frame, i64))
def make_child(ctx, frame, move):
    """Make a move of the node on this stack."""
    # step 8: make it
    tb = tables_of(ctx)
    pos = above(frame).position
    make_move(tb, frame.position, pos, move)
    if header_of(ctx).options.early_evaluation and pos.checkers == U0:
        prefetch_rows(tb, pos, move_to(move))


@kernel(void(Context, Worker, Frame, Node, i64, i64, i64, i64, i64, i64))
def push_move(ctx, wk, frame, node, stage, alpha, beta, depth, split_type, kannan_type):
    """Prepare the search of the visit's move, already made, with a window in the node's view."""
    begin_visit(frame, stage, alpha, beta, depth)
    set_child(ctx, wk, frame, node, -beta, -alpha, max(depth, 0), split_type, kannan_type)


@kernel(void(Frame, i64, i64, i64, i64))
def begin_visit(frame, stage, alpha, beta, depth):
    """Set the window and depth, in the node's view, of the search of the visit's move."""
    visit = frame.visit
    visit.stage = stage
    visit.alpha = alpha
    visit.beta = beta
    visit.depth = depth
    visit.resume = STATE_CHILD


@kernel(boolean(Context, Worker))
def may_extend(ctx, wk):
    """Tell whether a move may be extended; the limit makes sure that a line of extended moves ends."""
    return wk.ply < _LONGEST_LINE * stack_of(ctx, wk.stack).root_depth


@kernel(i64(Context, Worker, Frame, Node))
def child_depth(ctx, wk, frame, node):
    """Return the depth, extended or reduced, for the visit's move, already made; set the depth without reduction."""
    child = above(frame)
    # step 9: search it, first of all: how deep
    gives = child.position.checkers != U0
    within = may_extend(ctx, wk)
    extension = extension_of(ctx, wk, frame.position, node, frame.visit, gives, within)
    child.node.extended = 1 if extension > 0 else 0
    depth = node.depth - 1 + extension
    frame.visit.new_depth = depth
    if extension != 0:
        return depth
    reduction = reduction_of(ctx, wk, frame.position, node, frame.visit, gives)
    reduced = min(depth, max(depth - reduction, 1))
    if reduced < depth:
        count_tried(wk, LMR)
    return reduced


@kernel(void(Node, Frame, i64))
def update_pv(node, child, move):
    """Set the node's line to a move and the child's line."""
    length = min(child.node.pv_length, MAX_PLY - 1)
    node.pv[0] = move
    for i in range(length):
        node.pv[i + 1] = child.node.pv[i]
    node.pv_length = length + 1
