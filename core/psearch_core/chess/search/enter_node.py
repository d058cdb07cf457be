"""Handlers of a node: enter, after a child, learn, finish. No recursion, no splitting, no clock.

Each handler works on one frame and returns what to do next; the scheduler's `step.py` calls them. A helper's split node
lies on another worker's stack, so handlers that use the node take it as a separate argument.

The search is negamax, fail-soft, with principal variation search: the first move of a PV node gets the full window, all
others a null window and, if they beat alpha, the full one.
"""

from psearch_core.chess.board.draws import has_legal_move, is_draw
from psearch_core.chess.ordering.history import learn_cutoff
from psearch_core.chess.ordering.movepick import PICK_CAPTURES, PICK_QUIETS
from psearch_core.chess.pruning.counters import count_pruned
from psearch_core.chess.pruning.node_pruning import PRUNE_NULL, PRUNE_RAZOR, PRUNE_RETURN, decide_futility
from psearch_core.chess.search.children import update_pv
from psearch_core.chess.search.correction import corrected, learn_correction, prefetch_corrections
from psearch_core.chess.search.decisions import prune_node
from psearch_core.chess.search.tt import (
    cuts,
    early_eval,
    entry_bound,
    entry_depth,
    entry_move,
    entry_score,
    estimate_of,
    fresh_eval,
    probe_table,
    static_eval,
    store_result,
)
from psearch_core.constants import (
    BOUND_EXACT,
    BOUND_LOWER,
    BOUND_NONE,
    BOUND_UPPER,
    DO_CHILD,
    DO_CUTOFF,
    DO_MOVES,
    DO_NULL,
    DO_QUIESCENCE,
    DO_RETURN,
    DRAW,
    INFINITE,
    MATE,
    NO_MOVE,
    NO_SCORE,
    NULL_MOVE,
    PASS_MAIN,
    PASS_PROBCUT,
    PASS_SINGULAR,
    PV_NODE,
    SKIP_NOTHING,
    U0,
    VISIT_FULL,
    VISIT_REDUCED,
    VISIT_SCOUT,
)
from psearch_core.records import MAX_PLY
from psearch_core.techniques import LMR, RAZORING
from psearch_core.toolchain.jit import kernel
from psearch_core.views import Context, Frame, Node, Worker, above, header_of, i64, stack_of, tables_of, void


@kernel(void(Node, i64))
def begin_node(node, ply):
    """Reset the fields of a node, in any game, except position, window and depth."""
    node.entry_alpha = node.alpha
    node.best = -INFINITE
    node.best_move = NO_MOVE
    node.tt_move = NO_MOVE
    node.tt_bound = BOUND_NONE
    node.tt_depth = 0
    node.ply = ply
    node.pass_kind = PASS_MAIN
    node.threats = U0
    node.straight_checks = U0


@kernel(i64(Node))
def bound_found(node):
    """Return the kind of bound of the node's best value, after all moves were searched."""
    if node.best >= node.beta:
        return BOUND_LOWER
    return BOUND_EXACT if node.best > node.entry_alpha else BOUND_UPPER


@kernel(i64(Context, Worker, Frame))
def enter(ctx, wk, frame):
    """Do everything before the first move. DO_RETURN leaves the node's value in `wk.value`."""
    node = frame.node
    pos = frame.position
    hd = header_of(ctx)
    pruning = hd.options.pruning
    ply = wk.ply
    node.pv_length = 0
    node.in_check = 1 if pos.checkers != U0 else 0
    if ply > wk.counters.seldepth:
        wk.counters.seldepth = ply
    if ply > 0:
        # step 1: draws, and the end of the stack
        if is_draw(ctx, wk, frame):
            wk.value = DRAW
            return DO_RETURN
        if ply >= MAX_PLY - 1:
            wk.value = DRAW if node.in_check else fresh_eval(ctx, wk, pos)
            return DO_RETURN
        # step 2: a shorter mate is already known
        if hd.options.mate_distance:
            node.alpha = max(node.alpha, -MATE + ply)
            node.beta = min(node.beta, MATE - ply - 1)
            if node.alpha >= node.beta:
                wk.value = node.alpha
                return DO_RETURN
    begin_node(node, ply)
    if ply + 2 < MAX_PLY:
        stack_of(ctx, wk.stack).cutoffs[ply + 2] = 0
    if node.depth <= 0 and ply > 0:
        return DO_QUIESCENCE

    # step 3: transposition table
    slots = prefetch_corrections(pruning, hd.learning, pos, node)
    early = early_eval(ctx, wk, node, pos)
    data = probe_table(ctx, pos)
    if data != U0:
        node.tt_move = entry_move(data)
        node.tt_bound = entry_bound(data)
        node.tt_score = entry_score(data, ply)
        node.tt_depth = entry_depth(data)
    alpha = node.alpha
    beta = node.beta
    pv_node = node.kannan_type == PV_NODE
    if data != U0 and not pv_node and ply > 0 and cuts(data, node.depth, alpha, beta, ply):
        wk.value = entry_score(data, ply)
        return DO_RETURN

    # step 4: static evaluation
    node.eval = NO_SCORE
    node.raw_eval = NO_SCORE
    node.improving = 0
    path = stack_of(ctx, wk.stack).path
    if not node.in_check:
        node.raw_eval = static_eval(ctx, wk, pos, data, early)
        node.eval = corrected(pruning, hd.learning, tables_of(ctx), pos, slots, node.raw_eval)
        if ply >= 2:
            before = path[ply - 2].eval
            node.improving = 1 if before != NO_SCORE and node.eval > before else 0
    path[ply].eval = node.eval
    node.estimate = estimate_of(node)

    # step 5: what can be said without a move, and the null move
    node.futility = NO_SCORE
    if ply > 0:
        decide_futility(wk, pruning, tables_of(ctx), pos, node)
        node.full_depth = node.depth
        # in the first iterations search all replies to root moves: a quiet waiting move may force mate
        is_early_reply = ply == 1 and stack_of(ctx, wk.stack).root_depth <= pruning.reply_iterations
        if not pv_node and not is_early_reply:
            action = prune_node(ctx, wk, pos, node, path[ply].move)
            if action == PRUNE_RETURN:
                wk.value = max(ply - MATE, min(wk.value, MATE - ply - 1))  # a user's rule may write any number
                return DO_RETURN
            if action == PRUNE_NULL and not node.in_check and path[ply].move != NULL_MOVE:
                return DO_NULL
            if action == PRUNE_RAZOR:
                count_pruned(wk, RAZORING)
                node.depth = 0
                return DO_QUIESCENCE
    return DO_MOVES


@kernel(i64(Context, Worker, Frame, Node, i64))
def after_move(ctx, wk, frame, node, value):
    """Update the node by a move's value, in the node's view. The caller holds the lock if the node is open.

    DO_CHILD: search the move again with the window in the visit; DO_CUTOFF: the move failed high; DO_MOVES: continue.
    """
    visit = frame.visit
    move = visit.move
    alpha = node.alpha
    beta = node.beta
    # step 10: after the child
    if value > visit.alpha and visit.stage == VISIT_REDUCED:
        # the reduced search failed high: search at full depth
        visit.alpha = alpha
        visit.beta = alpha + 1
        visit.depth = visit.new_depth
        visit.stage = VISIT_SCOUT
        return DO_CHILD
    if value > visit.alpha and value < beta and visit.stage == VISIT_SCOUT:
        # A null window proves only a bound. If another worker has raised alpha past it meanwhile, a null window at the
        # new alpha may be enough; else the move gets the full window.
        visit.alpha = alpha
        visit.stage = VISIT_FULL if value > alpha else VISIT_SCOUT
        visit.beta = beta if value > alpha else alpha + 1
        return DO_CHILD
    if value > node.best:
        node.best = value
    if value <= alpha:
        if visit.stage == VISIT_REDUCED:
            count_pruned(wk, LMR)
        return DO_MOVES
    node.best_move = move
    node.alpha = value
    if node.kannan_type == PV_NODE:
        # also at a cutoff: with mate distance pruning the shortest mate equals beta
        update_pv(node, above(frame), move)
    if value >= beta:
        node.cut_index = visit.index
        return DO_CUTOFF
    return DO_MOVES


@kernel(void(Context, Worker, Frame, Node))
def learn(ctx, wk, frame, node):
    """Learn from a cutoff: update the worker's killers and the shared histories."""
    # step 11: cutoff
    if node.pass_kind == PASS_SINGULAR or node.pass_kind == PASS_PROBCUT:
        return  # cutoffs in these passes do not judge moves of the node itself
    stack_of(ctx, wk.stack).cutoffs[wk.ply] += 1
    captures = 1 if node.stage == PICK_CAPTURES else 0
    quiets = 1 if node.stage == PICK_QUIETS else 0
    hd = header_of(ctx)
    move = frame.visit.move
    learn_cutoff(wk, hd.options.pruning, hd.learning, frame.position, node, move, wk.ply, captures, quiets)


@kernel(void(Context, Worker, Frame))
def finish(ctx, wk, frame):
    """Put the node's value into `wk.value` and the table. Called only for nodes that were searched completely."""
    node = frame.node
    hd = header_of(ctx)
    ply = wk.ply
    # step 12: finish
    if node.moves_done == 0 and (node.skip == SKIP_NOTHING or not has_legal_move(ctx, wk, frame)):
        wk.value = ply - MATE if node.in_check else DRAW
        return
    best = node.best
    wk.value = best
    if ply == 0 and node.end < hd.legal_root_moves:
        return  # the value of a part of the moves is not that of the position
    bound = bound_found(node)
    learn_correction(hd.options.pruning, hd.learning, tables_of(ctx), frame.position, node, bound)
    if hd.options.tt:
        store_result(ctx, wk, frame, best, node.depth, bound)
