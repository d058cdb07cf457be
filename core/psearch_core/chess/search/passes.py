"""Passes over a node's moves with another window or depth, before the main pass that gives its value.

A null move that failed high may need verification; a node without a table move may first be searched less deep; a
capture may refute the node (ProbCut); the table's move may be the only good one (singular). All passes happen in the
node's own frame, one after another, and each may be split: the worker that finishes a pass begins the next.
"""

from psearch_core.arithmetic import is_mate_bound
from psearch_core.chess.board.attacks import attacks_of
from psearch_core.chess.board.movegen import is_legal
from psearch_core.chess.board.position import find_pins
from psearch_core.chess.ordering.movepick import PICK_CAPTURES_START, PICK_TT, begin_picking, begin_root_picking
from psearch_core.chess.pruning.counters import count_pruned, count_tried
from psearch_core.chess.pruning.node_pruning import (
    IID_REDUCTION,
    PROBCUT_REDUCTION,
    needs_verification,
    null_reduction,
    wants_iid,
    wants_iir,
    wants_probcut,
    wants_singular,
)
from psearch_core.chess.search.children import may_extend
from psearch_core.chess.search.tt import store_result
from psearch_core.constants import (
    BOUND_LOWER,
    DO_MOVES,
    DO_RETURN,
    INFINITE,
    NO_MOVE,
    NO_SCORE,
    PASS_ENTRY,
    PASS_IID,
    PASS_MAIN,
    PASS_PROBCUT,
    PASS_SINGULAR,
    PASS_VERIFY,
    PV_NODE,
    SKIP_ALL_QUIETS,
    SKIP_QUIETS,
    U0,
)
from psearch_core.techniques import (
    IID,
    IIR,
    MULTICUT,
    NULL_MOVE_PRUNING,
    NULL_VERIFY,
    PROBCUT,
    QUIET_SHORTCUT,
    SINGULAR,
)
from psearch_core.toolchain.jit import kernel
from psearch_core.views import Context, Frame, Worker, header_of, i64, stack_of, tables_of, void


@kernel(void(Context, Worker, Frame, i64, i64, i64, i64))
def _begin_pass(ctx, wk, frame, pass_kind, alpha, beta, depth):
    """Set up the move picker for a pass over the moves. All passes except PASS_MAIN only prepare for it."""
    node = frame.node
    hd = header_of(ctx)
    node.pass_kind = pass_kind
    node.alpha = alpha
    node.beta = beta
    node.entry_alpha = alpha
    node.depth = depth
    node.best = -INFINITE
    node.best_move = NO_MOVE
    node.pv_length = 0
    find_pins(tables_of(ctx), frame.position)
    if hd.options.pruning.history_threats and node.threats == U0:  # never 0 once set, and the same in all passes
        node.threats = attacks_of(tables_of(ctx), frame.position, 1 - frame.position.side)
    if wk.ply == 0:
        begin_root_picking(stack_of(ctx, wk.stack), hd, node)
    else:
        begin_picking(node, PICK_CAPTURES_START if pass_kind == PASS_SINGULAR else PICK_TT)
    node.killer_1 = wk.killers[wk.ply, 0]
    node.killer_2 = wk.killers[wk.ply, 1]
    if pass_kind == PASS_PROBCUT:
        node.skip = SKIP_ALL_QUIETS
        node.see_threshold = beta - node.eval


@kernel(void(Context, Worker, Frame, i64))
def _next_pass(ctx, wk, frame, done):
    """Begin the next pass after `done` that applies to the node; the last one is PASS_MAIN."""
    # step 6: begin a pass
    node = frame.node
    hd = header_of(ctx)
    pruning = hd.options.pruning
    node.depth = node.full_depth
    alpha = node.full_alpha
    beta = node.full_beta
    depth = node.depth
    if wk.ply > 0:
        if done < PASS_IID and wants_iid(pruning, node):
            count_tried(wk, IID)
            _begin_pass(ctx, wk, frame, PASS_IID, alpha, beta, depth - IID_REDUCTION)
            return
        if done < PASS_PROBCUT and wants_probcut(pruning, node):
            count_tried(wk, PROBCUT)
            bound = beta + pruning.probcut_margin
            _begin_pass(ctx, wk, frame, PASS_PROBCUT, bound - 1, bound, depth - PROBCUT_REDUCTION)
            return
        if done < PASS_SINGULAR and wants_singular(pruning, node) and may_extend(ctx, wk):
            find_pins(tables_of(ctx), frame.position)
            if is_legal(tables_of(ctx), frame.position, node.tt_move):
                count_tried(wk, SINGULAR)
                bound = node.tt_score - pruning.singular_margin * depth
                # search all other moves at half depth: reliable enough, and cheap
                _begin_pass(ctx, wk, frame, PASS_SINGULAR, bound - 1, bound, (depth - 1) // 2)
                return
        if wants_iir(pruning, node):
            count_tried(wk, IIR)
            count_pruned(wk, IIR)
            depth -= 1
    _begin_pass(ctx, wk, frame, PASS_MAIN, alpha, beta, depth)
    if node.futility != NO_SCORE and pruning.quiet_shortcut:
        count_tried(wk, QUIET_SHORTCUT)
        if pruning.exempt_seventh:
            return  # some quiet moves are exempt
        # if one quiet move is futile, all are, and need not be generated
        count_pruned(wk, QUIET_SHORTCUT)
        node.skip = SKIP_QUIETS if pruning.exempt_checks else SKIP_ALL_QUIETS
        node.best = node.futility


@kernel(void(Context, Worker, Frame))
def begin_moves(ctx, wk, frame):
    """Begin the first pass over the moves, after all decisions that need no move."""
    node = frame.node
    node.full_alpha = node.alpha
    node.full_beta = node.beta
    node.full_depth = node.depth
    node.extension = 0
    _next_pass(ctx, wk, frame, PASS_ENTRY)


@kernel(i64(Context, Worker, Frame))
def after_null(ctx, wk, frame):
    """Handle the value of the null move, in `wk.value` and in the node's view. Returns DO_RETURN or DO_MOVES."""
    node = frame.node
    pruning = header_of(ctx).options.pruning
    beta = node.beta
    if wk.value < beta:
        begin_moves(ctx, wk, frame)
        return DO_MOVES
    if needs_verification(pruning, frame.position, node):
        count_tried(wk, NULL_VERIFY)
        reduction = null_reduction(pruning, frame.position, node)
        node.full_alpha = node.alpha
        node.full_beta = beta
        node.full_depth = node.depth
        node.extension = 0
        _begin_pass(ctx, wk, frame, PASS_VERIFY, beta - 1, beta, max(node.depth - reduction, 1))
        return DO_MOVES
    count_pruned(wk, NULL_MOVE_PRUNING)
    wk.value = beta  # a mate after a null move is no proof of a mate, but the bound holds
    return DO_RETURN


@kernel(i64(Context, Worker, Frame))
def finish_pass(ctx, wk, frame):
    """End a pass other than PASS_MAIN: DO_RETURN with a value in `wk.value`, or DO_MOVES with the next pass set up."""
    # step 12 of a pass that prepares: back to step 6
    node = frame.node
    pruning = header_of(ctx).options.pruning
    pass_kind = node.pass_kind
    best = node.best
    beta = node.full_beta
    if pass_kind == PASS_VERIFY:
        if best >= beta:
            count_pruned(wk, NULL_MOVE_PRUNING)
            wk.value = beta
            return DO_RETURN
        count_pruned(wk, NULL_VERIFY)
    elif pass_kind == PASS_IID:
        if node.best_move != NO_MOVE:
            count_pruned(wk, IID)
            node.tt_move = node.best_move
    elif pass_kind == PASS_PROBCUT:
        if best >= node.beta:
            count_pruned(wk, PROBCUT)
            if header_of(ctx).options.tt:
                store_result(ctx, wk, frame, best, node.full_depth - PROBCUT_REDUCTION, BOUND_LOWER)
            wk.value = best if is_mate_bound(best) else best - pruning.probcut_margin
            return DO_RETURN
    elif pass_kind == PASS_SINGULAR:
        bound = node.beta
        count_tried(wk, MULTICUT)
        if best < bound:
            count_pruned(wk, SINGULAR)
            node.extension = 2 if best < bound - pruning.double_margin and node.kannan_type != PV_NODE else 1
        elif bound >= beta:
            count_pruned(wk, MULTICUT)
            wk.value = bound
            return DO_RETURN
        elif node.tt_score >= beta:
            node.extension = -pruning.singular_negative
    _next_pass(ctx, wk, frame, pass_kind)
    return DO_MOVES
