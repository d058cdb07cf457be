"""What happens inside one node: enter, next move, after a child, finish. No recursion, no splitting, no clock.

Each handler works on one frame and says what comes next; `parallel/step.py` is the machine that calls them and the
only place where nodes are shared. The node being worked on may lie in another worker's stack (a helper's split
node), so handlers that touch the node take it as an argument beside the frame of the visit.

The values are negamax, fail-soft, with principal variation search: the first move of a PV node gets the full window,
all others a null window and, if they beat alpha, the full one.
"""

from __future__ import annotations

import numpy as np

from psearch.core.constants import (
    BOUND_EXACT,
    BOUND_LOWER,
    BOUND_NONE,
    BOUND_UPPER,
    DRAW,
    INFINITE,
    MATE,
    NO_MOVE,
    NO_SCORE,
    NULL_MOVE,
    PHASE_ENTRY,
    PHASE_IID,
    PHASE_MAIN,
    PHASE_PROBCUT,
    PHASE_SINGULAR,
    PHASE_VERIFY,
    SKIP_ALL_QUIETS,
    SKIP_NOTHING,
    SKIP_QUIETS,
    STATE_CHILD,
    STATE_QCHILD,
    U0,
    VISIT_FULL,
    VISIT_NULL,
    VISIT_REDUCED,
    VISIT_SCOUT,
)
from psearch.core.evaluate import evaluate
from psearch.core.history import learn_cutoff, piece_to
from psearch.core.jit import kernel
from psearch.core.movegen import generate_captures, generate_quiets, is_legal
from psearch.core.movepick import (
    PICK_CAPTURES_START,
    PICK_QUIETS,
    PICK_TT,
    begin_picking,
    begin_root_picking,
    score_captures,
    score_quiets,
    take_best,
)
from psearch.core.position import find_pins, insufficient_material, make_move, make_null
from psearch.core.pruning import (
    IID,
    IIR,
    LMR,
    MULTICUT,
    NULL_MOVE_PRUNING,
    NULL_VERIFY,
    PROBCUT,
    PRUNE_NULL,
    PRUNE_RAZOR,
    PRUNE_RETURN,
    QUIET_SHORTCUT,
    RAZORING,
    SEE_QUIESCENCE,
    SINGULAR,
    count_pruned,
    count_tried,
    decide_futility,
    extension_of,
    is_mate_bound,
    needs_verification,
    null_reduction,
    prune_node,
    prunes_capture,
    reduction_of,
    wants_iid,
    wants_iir,
    wants_probcut,
    wants_singular,
)
from psearch.core.records import (
    FRAME_SIZE,
    MAX_PLY,
    STACK_SIZE,
    Context,
    Frame,
    Node,
    Position,
    Stack,
    Worker,
    boolean,
    frame_at,
    header_at,
    i64,
    stack_at,
    tables_at,
    u64,
    void,
)
from psearch.core.see import see_at_least
from psearch.core.tt import (
    cuts,
    entry_bound,
    entry_depth,
    entry_move,
    entry_score,
    prefetch_entry,
    probe,
    score_to_table,
    store,
    stored_eval,
)

# What a handler wants next
DO_RETURN, DO_MOVES, DO_NULL, DO_CHILD, DO_CUTOFF, DO_QUIESCENCE = 0, 1, 2, 3, 4, 5


# -- setting up a child ----------------------------------------------------------------------------------------------


@kernel(i64(Context, i64))
def frame_index(ctx, frame):
    """Number of a frame in the arena."""
    return (frame - ctx.frames) // FRAME_SIZE


@kernel(void(Context, Worker, i64, Node, i64, i64, i64, i64, i64))
def set_child(ctx, wk, frame, home, alpha, beta, depth, expected_type, expected):
    """Prepare the frame above `frame` for entry; its position has been made. The window is the child's own view.

    home: the node whose move it is. expected_type is the policy's, `expected` the one that steers reductions.
    """
    fr = frame_at(frame)
    child = frame_at(frame + FRAME_SIZE)
    node = child.node
    node.alpha = alpha
    node.beta = beta
    node.depth = depth
    node.type = expected_type
    node.expected = expected
    node.cont_2 = home.cont_1
    move = np.int64(fr.visit.move)
    node.cont_1 = 0 if move == NULL_MOVE else piece_to(fr.position, move)
    child.visit.home = frame_index(ctx, frame) + 1
    path = stack_at(ctx.stacks + wk.stack * STACK_SIZE).path
    path[wk.ply + 1].key = child.position.key
    path[wk.ply + 1].move = fr.visit.move


@kernel(void(Context, Worker, i64, Node, i64, i64))
def push_null(ctx, wk, frame, node, expected_type, expected):
    """Pass the move and search what follows with a null window below beta, R plies less deep."""
    fr = frame_at(frame)
    reduction = null_reduction(header_at(ctx.header).options.pruning, fr.position, node)
    fr.visit.move = NULL_MOVE
    fr.visit.stage = VISIT_NULL
    fr.visit.resume = STATE_CHILD
    child = frame_at(frame + FRAME_SIZE)
    make_null(tables_at(ctx.tables), fr.position, child.position)
    child.node.extended = 0
    beta = np.int64(node.beta)
    set_child(ctx, wk, frame, node, -beta, 1 - beta, node.depth - reduction - 1, expected_type, expected)


@kernel(void(Context, i64, i64))
def make_child(ctx, frame, move):
    """Make a move of the node on this stack."""
    fr = frame_at(frame)
    child = frame_at(frame + FRAME_SIZE)
    make_move(tables_at(ctx.tables), fr.position, child.position, move)
    prefetch_entry(ctx, child.position.key)


@kernel(void(Context, Worker, i64, Node, i64, i64, i64, i64, i64, i64))
def push_move(ctx, wk, frame, home, stage, alpha, beta, depth, expected_type, expected):
    """Search the move of the visit, already made, with a window in the node's view."""
    visit = frame_at(frame).visit
    visit.stage = stage
    visit.alpha = alpha
    visit.beta = beta
    visit.depth = depth
    visit.resume = STATE_CHILD
    set_child(ctx, wk, frame, home, -beta, -alpha, depth, expected_type, expected)


@kernel(i64(Context, Worker, i64, Node))
def child_depth(ctx, wk, frame, node):
    """The depth for the move of the visit, already made: extended or reduced. What it is without reduction goes into
    the visit."""
    fr = frame_at(frame)
    child = frame_at(frame + FRAME_SIZE)
    hd = header_at(ctx.header)
    gives = 1 if child.position.checkers != U0 else 0
    # beyond twice the nominal depth a line is no longer extended
    within = 1 if wk.ply < 2 * stack_at(ctx.stacks + wk.stack * STACK_SIZE).root_depth else 0
    extension = extension_of(wk, hd.options.pruning, tables_at(ctx.tables), fr.position, node, fr.visit, gives, within)
    child.node.extended = 1 if extension > 0 else 0
    depth = node.depth - 1 + extension
    fr.visit.new_depth = depth
    if extension != 0:
        return depth
    reduction = reduction_of(wk, hd.options.pruning, hd.learning, fr.position, node, fr.visit, gives)
    reduced = min(depth, max(depth - reduction, np.int64(1)))
    if reduced < depth:
        count_tried(wk, LMR)
    return reduced


# -- enter -----------------------------------------------------------------------------------------------------------


@kernel(boolean(Context, Stack, Position, i64))
def is_repetition(ctx, st, pos, ply):
    """A position seen before in this search, or twice before in the game."""
    hd = header_at(ctx.header)
    limit = min(np.int64(pos.reversible), ply + hd.history_count)
    key = pos.key
    seen = 0
    back = 4
    while back <= limit:
        earlier = st.path[ply - back].key if back <= ply else hd.history[back - ply - 1]
        if earlier == key:
            if back < ply:
                return True
            seen += 1
            if seen == 2:
                return True
        back += 2
    return False


@kernel(boolean(Context, Worker, i64))
def _has_legal_move(ctx, wk, frame):
    fr = frame_at(frame)
    tb = tables_at(ctx.tables)
    find_pins(tb, fr.position)
    return generate_captures(tb, fr.position, fr.node, 0) + generate_quiets(tb, fr.position, fr.node, 0) > 0


@kernel(boolean(Context, Worker, i64))
def is_draw(ctx, wk, frame):
    """Draw by the fifty-move rule (not when mated on the hundredth ply), repetition, or insufficient material."""
    pos = frame_at(frame).position
    if pos.rule50 >= 4:
        if pos.rule50 >= 100 and (pos.checkers == U0 or _has_legal_move(ctx, wk, frame)):
            return True
        if is_repetition(ctx, stack_at(ctx.stacks + wk.stack * STACK_SIZE), pos, wk.ply):
            return True
    return insufficient_material(pos)


@kernel(u64(Context, Worker, Position))
def _probe_counted(ctx, wk, pos):
    """The table's data word for a position, U0 without one or with the table switched off."""
    if not header_at(ctx.header).options.tt:
        return U0
    wk.tt_probes += 1
    data = probe(ctx, pos.key)
    if data != U0:
        wk.tt_hits += 1
    return data


@kernel(i64(Context, Position, u64))
def _static_eval(ctx, pos, data):
    """The evaluation of a position not in check: what the table has kept of it, else anew."""
    value = stored_eval(data)
    return value if value != NO_SCORE else evaluate(tables_at(ctx.tables), pos)


@kernel(i64(Node))
def _estimate(node):
    """The static evaluation, or the table's score where its bound says that it is nearer to the truth."""
    if node.eval == NO_SCORE or node.tt_kind == BOUND_NONE or is_mate_bound(np.int64(node.tt_score)):
        return np.int64(node.eval)
    score = np.int64(node.tt_score)
    nearer = (node.tt_kind & BOUND_LOWER and score > node.eval) or (node.tt_kind & BOUND_UPPER and score < node.eval)
    return score if nearer else np.int64(node.eval)


@kernel(void(Context, Worker, i64, i64, i64, i64))
def _store(ctx, wk, frame, value, depth, bound):
    """Write a result for a node into the table."""
    fr = frame_at(frame)
    score = score_to_table(value, wk.ply)
    move = np.int64(fr.node.best_move)
    store(ctx, header_at(ctx.header).age, fr.position.key, move, score, np.int64(fr.node.eval), depth, bound)


@kernel(boolean(Context, Position, Node))
def _is_playable(ctx, pos, node):
    """Whether the table's move is legal here."""
    tb = tables_at(ctx.tables)
    find_pins(tb, pos)
    return is_legal(tb, pos, np.int64(node.tt_move))


@kernel(i64(Context, Worker, i64))
def enter(ctx, wk, frame):
    """Everything before the first move. DO_RETURN leaves the node's value in `wk.value`."""
    fr = frame_at(frame)
    node = fr.node
    pos = fr.position
    hd = header_at(ctx.header)
    tb = tables_at(ctx.tables)
    ply = wk.ply
    node.pv_length = 0
    node.in_check = 1 if pos.checkers != U0 else 0
    if ply > wk.seldepth:
        wk.seldepth = ply
    if ply > 0:
        # step 1: draws, and the end of the stack
        if is_draw(ctx, wk, frame):
            wk.value = DRAW
            return DO_RETURN
        if ply >= MAX_PLY - 1:
            wk.value = DRAW if node.in_check else evaluate(tb, pos)
            return DO_RETURN
        # step 2: a shorter mate is already known
        if hd.options.mate_distance:
            node.alpha = max(np.int64(node.alpha), -MATE + ply)
            node.beta = min(np.int64(node.beta), MATE - ply - 1)
            if node.alpha >= node.beta:
                wk.value = np.int64(node.alpha)
                return DO_RETURN
    node.entry_alpha = node.alpha
    node.best = -INFINITE
    node.best_move = NO_MOVE
    node.tt_move = NO_MOVE
    node.tt_bound = BOUND_NONE
    node.tt_kind = BOUND_NONE
    node.tt_depth = 0
    node.ply = ply
    node.phase = PHASE_MAIN
    if node.depth <= 0 and ply > 0:
        return DO_QUIESCENCE

    # step 3: transposition table
    data = _probe_counted(ctx, wk, pos)
    if data != U0:
        node.tt_move = entry_move(data)
        bound = entry_bound(data)
        node.tt_bound = bound if bound != BOUND_EXACT else BOUND_NONE
        node.tt_kind = bound
        node.tt_score = entry_score(data, ply)
        node.tt_depth = entry_depth(data)
    alpha = np.int64(node.alpha)
    beta = np.int64(node.beta)
    pv_node = beta - alpha > 1
    if data != U0 and not pv_node and ply > 0 and cuts(data, np.int64(node.depth), alpha, beta, ply):
        wk.value = entry_score(data, ply)
        return DO_RETURN

    # step 4: static evaluation
    node.eval = NO_SCORE
    node.improving = 0
    path = stack_at(ctx.stacks + wk.stack * STACK_SIZE).path
    if not node.in_check:
        node.eval = _static_eval(ctx, pos, data)
        if ply >= 2:
            before = np.int64(path[ply - 2].eval)
            node.improving = 1 if before != NO_SCORE and node.eval > before else 0
    path[ply].eval = node.eval
    node.estimate = _estimate(node)

    # step 5: what can be said without a move, and the null move
    pruning = hd.options.pruning
    node.futility = NO_SCORE
    if ply > 0:
        decide_futility(wk, pruning, pos, node)
        node.full_depth = node.depth
        if not pv_node:
            action = prune_node(wk, pruning, pos, node, np.int64(path[ply].move))
            if action == PRUNE_RETURN:
                return DO_RETURN
            if action == PRUNE_NULL:
                return DO_NULL
            if action == PRUNE_RAZOR:
                count_pruned(wk, RAZORING)
                node.depth = 0
                return DO_QUIESCENCE
    return DO_MOVES


# -- phases: searches of the same node with another window or depth ---------------------------------------------------


@kernel(void(Context, Worker, i64, i64, i64, i64, i64))
def _begin_phase(ctx, wk, frame, phase, alpha, beta, depth):
    """Set up the move picker for a pass over the moves. All but PHASE_MAIN only prepare for it."""
    fr = frame_at(frame)
    node = fr.node
    hd = header_at(ctx.header)
    node.phase = phase
    node.alpha = alpha
    node.beta = beta
    node.entry_alpha = alpha
    node.depth = depth
    node.best = -INFINITE
    node.best_move = NO_MOVE
    node.pv_length = 0
    find_pins(tables_at(ctx.tables), fr.position)
    if wk.ply == 0:
        begin_root_picking(stack_at(ctx.stacks + wk.stack * STACK_SIZE), hd, node)
    else:
        begin_picking(node, PICK_CAPTURES_START if phase == PHASE_SINGULAR else PICK_TT)
    node.killer_1 = wk.killers[wk.ply, 0]
    node.killer_2 = wk.killers[wk.ply, 1]
    if phase == PHASE_PROBCUT:
        node.skip = SKIP_ALL_QUIETS
        node.see_threshold = beta - node.eval


@kernel(void(Context, Worker, i64, i64))
def _next_phase(ctx, wk, frame, done):
    """Begin the first phase after `done` that the node wants; PHASE_MAIN at the latest."""
    fr = frame_at(frame)
    node = fr.node
    hd = header_at(ctx.header)
    pruning = hd.options.pruning
    node.depth = node.full_depth
    alpha = np.int64(node.full_alpha)
    beta = np.int64(node.full_beta)
    depth = np.int64(node.depth)
    if wk.ply > 0:
        if done < PHASE_IID and wants_iid(pruning, node):
            count_tried(wk, IID)
            _begin_phase(ctx, wk, frame, PHASE_IID, alpha, beta, depth - 2)
            return
        if done < PHASE_PROBCUT and wants_probcut(pruning, node):
            count_tried(wk, PROBCUT)
            bound = beta + pruning.probcut_margin
            _begin_phase(ctx, wk, frame, PHASE_PROBCUT, bound - 1, bound, depth - 3)
            return
        if (
            done < PHASE_SINGULAR
            and wants_singular(pruning, node)
            and wk.ply < 2 * stack_at(ctx.stacks + wk.stack * STACK_SIZE).root_depth
            and _is_playable(ctx, fr.position, node)
        ):
            count_tried(wk, SINGULAR)
            bound = node.tt_score - pruning.singular_margin * depth
            _begin_phase(ctx, wk, frame, PHASE_SINGULAR, bound - 1, bound, (depth - 1) // 2)
            return
        if wants_iir(pruning, node):
            count_tried(wk, IIR)
            count_pruned(wk, IIR)
            depth -= 1
    _begin_phase(ctx, wk, frame, PHASE_MAIN, alpha, beta, depth)
    if node.futility != NO_SCORE and pruning.quiet_shortcut and not pruning.exempt_seventh:
        # one quiet move is futile, so all are, and need not be generated
        count_tried(wk, QUIET_SHORTCUT)
        count_pruned(wk, QUIET_SHORTCUT)
        node.skip = SKIP_QUIETS if pruning.exempt_checks else SKIP_ALL_QUIETS
        node.best = node.futility


@kernel(void(Context, Worker, i64))
def begin_moves(ctx, wk, frame):
    """Everything is decided that can be without a move: begin with the moves."""
    node = frame_at(frame).node
    node.full_alpha = node.alpha
    node.full_beta = node.beta
    node.full_depth = node.depth
    node.extension = 0
    _next_phase(ctx, wk, frame, PHASE_ENTRY)


@kernel(i64(Context, Worker, i64))
def after_null(ctx, wk, frame):
    """The null move has been searched; its value, in the node's view, is in `wk.value`. DO_RETURN or DO_MOVES."""
    fr = frame_at(frame)
    node = fr.node
    pruning = header_at(ctx.header).options.pruning
    beta = np.int64(node.beta)
    if wk.value < beta:
        begin_moves(ctx, wk, frame)
        return DO_MOVES
    if needs_verification(pruning, fr.position, node):
        count_tried(wk, NULL_VERIFY)
        reduction = null_reduction(pruning, fr.position, node)
        node.full_alpha = node.alpha
        node.full_beta = beta
        node.full_depth = node.depth
        node.extension = 0
        _begin_phase(ctx, wk, frame, PHASE_VERIFY, beta - 1, beta, max(node.depth - reduction, np.int64(1)))
        return DO_MOVES
    count_pruned(wk, NULL_MOVE_PRUNING)
    wk.value = beta  # a mate found after passing is no proof; the bound is
    return DO_RETURN


@kernel(i64(Context, Worker, i64))
def finish_phase(ctx, wk, frame):
    """A phase other than PHASE_MAIN is through: DO_RETURN with a value in `wk.value`, or DO_MOVES with the next."""
    fr = frame_at(frame)
    node = fr.node
    pruning = header_at(ctx.header).options.pruning
    phase = np.int64(node.phase)
    best = np.int64(node.best)
    beta = np.int64(node.full_beta)
    if phase == PHASE_VERIFY:
        if best >= beta:
            count_pruned(wk, NULL_MOVE_PRUNING)
            wk.value = beta
            return DO_RETURN
        count_pruned(wk, NULL_VERIFY)
    elif phase == PHASE_IID:
        if node.best_move != NO_MOVE:
            count_pruned(wk, IID)
            node.tt_move = node.best_move
    elif phase == PHASE_PROBCUT:
        if best >= node.beta:
            count_pruned(wk, PROBCUT)
            if header_at(ctx.header).options.tt:
                _store(ctx, wk, frame, best, np.int64(node.full_depth) - 3, BOUND_LOWER)
            wk.value = best if is_mate_bound(best) else best - pruning.probcut_margin
            return DO_RETURN
    elif phase == PHASE_SINGULAR:
        bound = np.int64(node.beta)
        if best < bound:
            count_pruned(wk, SINGULAR)
            node.extension = 2 if best < bound - pruning.double_margin and beta - node.full_alpha == 1 else 1
        elif bound >= beta:
            count_pruned(wk, MULTICUT)
            wk.value = bound
            return DO_RETURN
        elif node.tt_score >= beta:
            node.extension = -1
    _next_phase(ctx, wk, frame, phase)
    return DO_MOVES


# -- after a child ---------------------------------------------------------------------------------------------------


@kernel(void(Node, Frame, i64))
def _update_pv(node, child, move):
    """The node's line: this move, then the child's line."""
    length = min(np.int64(child.node.pv_length), MAX_PLY - 1)
    node.pv[0] = move
    for i in range(length):
        node.pv[i + 1] = child.node.pv[i]
    node.pv_length = length + 1


@kernel(i64(Context, Worker, i64, Node, i64))
def after_move(ctx, wk, frame, node, value):
    """Take a move's value (in the node's view) into the node. The caller holds the lock if the node is open.

    DO_CHILD: search the move again with the window left in the visit; DO_CUTOFF: failed high; DO_MOVES: go on.
    """
    fr = frame_at(frame)
    visit = fr.visit
    move = np.int64(visit.move)
    alpha = np.int64(node.alpha)
    beta = np.int64(node.beta)
    if value > visit.alpha and visit.stage == VISIT_REDUCED:
        # the reduced search says that it is worth the full depth
        visit.alpha = alpha
        visit.beta = alpha + 1
        visit.depth = visit.new_depth
        visit.stage = VISIT_SCOUT
        return DO_CHILD
    if value > visit.alpha and value < beta and visit.stage == VISIT_SCOUT:
        # A null window proves a bound, never a value. If another worker has raised alpha meanwhile past the bound,
        # a null window at the present alpha may settle it; else the move gets the full window.
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
    if beta - alpha > 1:
        # also at a cutoff: with mate distance pruning the shortest mate equals beta
        _update_pv(node, frame_at(frame + FRAME_SIZE), move)
    if value >= beta:
        node.cut_index = visit.index
        return DO_CUTOFF
    return DO_MOVES


@kernel(void(Context, Worker, i64, Node))
def learn(ctx, wk, frame, node):
    """After a cutoff: killers of the worker that found it, and the history that all share."""
    if node.phase == PHASE_SINGULAR or node.phase == PHASE_PROBCUT:
        return  # these ask another question
    fr = frame_at(frame)
    begun = 1 if node.stage == PICK_QUIETS else 0
    learn_cutoff(wk, header_at(ctx.header).learning, fr.position, node, np.int64(fr.visit.move), wk.ply, begun)


# -- finish ----------------------------------------------------------------------------------------------------------


@kernel(void(Context, Worker, i64))
def finish(ctx, wk, frame):
    """The node's value into `wk.value` and into the table. Only for nodes that were searched to their end."""
    fr = frame_at(frame)
    node = fr.node
    hd = header_at(ctx.header)
    ply = wk.ply
    if node.moves_done == 0 and (node.skip == SKIP_NOTHING or not _has_legal_move(ctx, wk, frame)):
        wk.value = ply - MATE if node.in_check else DRAW
        return
    best = np.int64(node.best)
    wk.value = best
    if not hd.options.tt:
        return
    if ply == 0 and node.end < hd.legal_root_moves:
        return  # the value of some of the moves is not that of the position
    bound = BOUND_UPPER
    if best >= node.beta:
        bound = BOUND_LOWER
    elif best > node.entry_alpha:
        bound = BOUND_EXACT
    _store(ctx, wk, frame, best, np.int64(node.depth), bound)


# -- quiescence ------------------------------------------------------------------------------------------------------


@kernel(void(Node, i64))
def _lift_captures(node, captures_end):
    """Among evasions captures come first: history scores reach as high as capture scores."""
    for i in range(captures_end):
        score = min((np.int64(node.moves[i]) >> 16) + 16384, 32000)
        node.moves[i] = (score << 16) | (np.int64(node.moves[i]) & 0xFFFF)


@kernel(void(Node))
def _lift_move(node):
    """The table's move first."""
    for i in range(node.end):
        if np.int64(node.moves[i]) & 0xFFFF == node.tt_move:
            node.moves[i] = (32767 << 16) | np.int64(node.tt_move)


@kernel(i64(Context, Worker, i64))
def enter_quiescence(ctx, wk, frame):
    """Stand pat, or all evasions in check. DO_RETURN or DO_MOVES."""
    fr = frame_at(frame)
    node = fr.node
    pos = fr.position
    hd = header_at(ctx.header)
    tb = tables_at(ctx.tables)
    ply = wk.ply
    wk.qnodes += 1
    data = _probe_counted(ctx, wk, pos)
    if data != U0:
        if node.beta - node.alpha == 1 and cuts(data, 0, np.int64(node.alpha), np.int64(node.beta), ply):
            wk.value = entry_score(data, ply)
            return DO_RETURN
        node.tt_move = entry_move(data)
    node.eval = NO_SCORE
    if not node.in_check:
        node.eval = _static_eval(ctx, pos, data)
        node.best = node.eval
        if node.best >= node.beta:
            wk.value = np.int64(node.best)
            if hd.options.tt and data == U0:
                _store(ctx, wk, frame, np.int64(node.best), 0, BOUND_LOWER)
            return DO_RETURN
        node.alpha = max(node.alpha, node.best)
    begin_picking(node, PICK_TT)
    find_pins(tb, pos)
    captures_end = generate_captures(tb, pos, node, 0)
    score_captures(pos, node, 0, captures_end)
    node.end = captures_end
    if node.in_check:
        node.end = generate_quiets(tb, pos, node, captures_end)
        score_quiets(hd.learning, pos, node, captures_end, np.int64(node.end))
        _lift_captures(node, captures_end)
    _lift_move(node)
    return DO_MOVES


@kernel(i64(Context, Worker, i64))
def next_quiescence(ctx, wk, frame):
    """Make the next capture or evasion: DO_CHILD, or DO_RETURN when there is none."""
    fr = frame_at(frame)
    node = fr.node
    tb = tables_at(ctx.tables)
    pruning = header_at(ctx.header).options.pruning
    prune = header_at(ctx.header).options.see_pruning != 0 and not node.in_check
    while node.cursor < node.end:
        move = take_best(node)
        if not node.in_check and prunes_capture(wk, pruning, tb, fr.position, node, move):
            continue
        if prune:
            count_tried(wk, SEE_QUIESCENCE)
            if not see_at_least(tb, fr.position, move, 0):
                count_pruned(wk, SEE_QUIESCENCE)
                continue
        node.moves_done += 1
        fr.visit.move = move
        fr.visit.resume = STATE_QCHILD
        child = frame_at(frame + FRAME_SIZE)
        make_move(tb, fr.position, child.position, move)
        prefetch_entry(ctx, child.position.key)
        alpha, beta = np.int64(node.alpha), np.int64(node.beta)
        set_child(ctx, wk, frame, node, -beta, -alpha, 0, np.int64(node.type), np.int64(node.expected))
        return DO_CHILD
    if node.in_check and node.moves_done == 0:
        wk.value = wk.ply - MATE
        return DO_RETURN
    wk.value = np.int64(node.best)
    if header_at(ctx.header).options.tt:
        _store(ctx, wk, frame, np.int64(node.best), 0, BOUND_EXACT if node.best > node.entry_alpha else BOUND_UPPER)
    return DO_RETURN


@kernel(i64(Context, Worker, i64, i64))
def after_quiescence(ctx, wk, frame, value):
    """Take a capture's value (in the node's view) into the node: DO_MOVES or DO_RETURN."""
    fr = frame_at(frame)
    node = fr.node
    if value > node.best:
        node.best = value
        if value > node.alpha:
            node.best_move = fr.visit.move
            node.alpha = value
            if value >= node.beta:
                wk.value = value
                if header_at(ctx.header).options.tt:
                    _store(ctx, wk, frame, np.int64(node.best), 0, BOUND_LOWER)
                return DO_RETURN
            _update_pv(node, frame_at(frame + FRAME_SIZE), np.int64(fr.visit.move))
    return DO_MOVES
