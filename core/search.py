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
    MATE_IN_MAX_PLY,
    NO_MOVE,
    NO_SCORE,
    NULL_MOVE,
    STATE_CHILD,
    STATE_QCHILD,
    U0,
    VISIT_FULL,
    VISIT_NULL,
    VISIT_SCOUT,
)
from psearch.core.evaluate import evaluate
from psearch.core.jit import kernel
from psearch.core.movegen import generate_captures, generate_quiets
from psearch.core.movepick import (
    PICK_TT,
    begin_picking,
    begin_root_picking,
    is_quiet,
    learn_cutoff,
    score_captures,
    score_quiets,
    take_best,
)
from psearch.core.position import find_pins, has_pieces, insufficient_material, make_move, make_null
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
    entry_move,
    entry_score,
    prefetch_entry,
    probe,
    score_to_table,
    store,
    stored_eval,
)

NULL_MOVE_DEPTH = 2
NULL_MOVE_REDUCTION = 3
FUTILITY_MARGIN = 150
"""What a quiet move that gives no check may gain at a frontier node (depth 1), centipawns."""

# What a handler wants next
DO_RETURN, DO_MOVES, DO_NULL, DO_CHILD, DO_CUTOFF, DO_QUIESCENCE = 0, 1, 2, 3, 4, 5


# -- setting up a child ----------------------------------------------------------------------------------------------


@kernel(i64(Context, i64))
def frame_index(ctx, frame):
    """Number of a frame in the arena."""
    return (frame - ctx.frames) // FRAME_SIZE


@kernel(void(Context, Worker, i64, i64, i64, i64, i64))
def set_child(ctx, wk, frame, alpha, beta, depth, expected_type):
    """Prepare the frame above `frame` for entry; its position has been made. The window is the child's own view."""
    fr = frame_at(frame)
    child = frame_at(frame + FRAME_SIZE)
    node = child.node
    node.alpha = alpha
    node.beta = beta
    node.depth = depth
    node.type = expected_type
    child.visit.home = frame_index(ctx, frame) + 1
    path = stack_at(ctx.stacks + wk.stack * STACK_SIZE).path
    path[wk.ply + 1].key = child.position.key
    path[wk.ply + 1].move = fr.visit.move


@kernel(void(Context, Worker, i64, Node, i64))
def push_null(ctx, wk, frame, node, expected_type):
    """Pass the move and search what follows with a null window below beta, R plies less deep."""
    fr = frame_at(frame)
    depth = np.int64(node.depth)
    reduction = NULL_MOVE_REDUCTION + depth // 6
    fr.visit.move = NULL_MOVE
    fr.visit.stage = VISIT_NULL
    fr.visit.resume = STATE_CHILD
    make_null(tables_at(ctx.tables), fr.position, frame_at(frame + FRAME_SIZE).position)
    set_child(ctx, wk, frame, -np.int64(node.beta), 1 - np.int64(node.beta), depth - reduction - 1, expected_type)


@kernel(boolean(Context, Worker, i64, Node, i64))
def make_child(ctx, wk, frame, node, move):
    """Make a move of the node on this stack. False: the move is futile here, and skipped."""
    fr = frame_at(frame)
    child = frame_at(frame + FRAME_SIZE)
    make_move(tables_at(ctx.tables), fr.position, child.position, move)
    if node.futility != NO_SCORE and child.position.checkers == U0 and is_quiet(fr.position, move):
        if node.futility > node.best:
            node.best = node.futility
        return False
    prefetch_entry(ctx, child.position.key)
    return True


@kernel(void(Context, Worker, i64, i64, i64, i64, i64, i64))
def push_move(ctx, wk, frame, stage, alpha, beta, depth, expected_type):
    """Search the move of the visit, already made, with a window in the node's view."""
    visit = frame_at(frame).visit
    visit.stage = stage
    visit.alpha = alpha
    visit.beta = beta
    visit.depth = depth
    visit.resume = STATE_CHILD
    set_child(ctx, wk, frame, -beta, -alpha, depth, expected_type)


@kernel(i64(Context, Worker, i64, Node))
def child_depth(ctx, wk, frame, node):
    """One ply less, or none after a check."""
    child = frame_at(frame + FRAME_SIZE)
    # beyond twice the nominal depth a series of checks is no longer extended
    if child.position.checkers != U0 and wk.ply < 2 * stack_at(ctx.stacks + wk.stack * STACK_SIZE).root_depth:
        return np.int64(node.depth)
    return np.int64(node.depth) - 1


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


@kernel(i64(Context, Worker, Position, u64))
def _static_eval(ctx, wk, pos, data):
    """The evaluation of a position not in check: what the table has kept of it, else anew."""
    value = stored_eval(data)
    return value if value != NO_SCORE else evaluate(tables_at(ctx.tables), wk.evaluation, pos)


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
            wk.value = DRAW if node.in_check else evaluate(tb, wk.evaluation, pos)
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
    if node.depth <= 0 and ply > 0:
        return DO_QUIESCENCE

    # step 3: transposition table
    data = _probe_counted(ctx, wk, pos)
    if data != U0:
        node.tt_move = entry_move(data)
        bound = entry_bound(data)
        node.tt_bound = bound if bound != BOUND_EXACT else BOUND_NONE
    alpha = np.int64(node.alpha)
    beta = np.int64(node.beta)
    pv_node = beta - alpha > 1
    if data != U0 and not pv_node and ply > 0 and cuts(data, np.int64(node.depth), alpha, beta, ply):
        wk.value = entry_score(data, ply)
        return DO_RETURN

    # step 4: static evaluation
    node.eval = NO_SCORE
    if not node.in_check:
        node.eval = _static_eval(ctx, wk, pos, data)
    path = stack_at(ctx.stacks + wk.stack * STACK_SIZE).path
    path[ply].eval = node.eval

    # step 5: null move. Not in check, not twice in a row, and not without pieces, where zugzwang is common
    if (
        hd.options.null_move
        and not pv_node
        and node.depth >= NULL_MOVE_DEPTH
        and not node.in_check
        and node.eval >= beta
        and abs(beta) < MATE_IN_MAX_PLY
        and ply > 0
        and path[ply].move != NULL_MOVE
        and has_pieces(pos, np.int64(pos.side))
    ):
        return DO_NULL
    return DO_MOVES


@kernel(void(Context, Worker, i64))
def begin_moves(ctx, wk, frame):
    """Set up the move picker and decide about futility."""
    fr = frame_at(frame)
    node = fr.node
    hd = header_at(ctx.header)
    find_pins(tables_at(ctx.tables), fr.position)
    if wk.ply == 0:
        begin_root_picking(stack_at(ctx.stacks + wk.stack * STACK_SIZE), hd, node)
    else:
        begin_picking(node, PICK_TT)
    node.killer_1 = wk.killers[wk.ply, 0]
    node.killer_2 = wk.killers[wk.ply, 1]
    node.futility = NO_SCORE
    if (
        hd.options.futility
        and node.depth == 1
        and wk.ply > 0
        and not node.in_check
        and node.beta - node.alpha == 1
        and abs(np.int64(node.alpha)) < MATE_IN_MAX_PLY
        and node.eval + FUTILITY_MARGIN <= node.alpha
    ):
        node.futility = node.eval + FUTILITY_MARGIN


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
    fr = frame_at(frame)
    learn_cutoff(wk, header_at(ctx.header).learning, fr.position, node, np.int64(fr.visit.move), wk.ply)


# -- finish ----------------------------------------------------------------------------------------------------------


@kernel(void(Context, Worker, i64))
def finish(ctx, wk, frame):
    """The node's value into `wk.value` and into the table. Only for nodes that were searched to their end."""
    fr = frame_at(frame)
    node = fr.node
    hd = header_at(ctx.header)
    ply = wk.ply
    if node.moves_done == 0:
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
    store(
        ctx,
        hd.age,
        fr.position.key,
        np.int64(node.best_move),
        score_to_table(best, ply),
        np.int64(node.eval),
        np.int64(node.depth),
        bound,
    )


# -- quiescence ------------------------------------------------------------------------------------------------------


@kernel(void(Context, Worker, i64, i64))
def _store_quiescence(ctx, wk, frame, bound):
    fr = frame_at(frame)
    node = fr.node
    score = score_to_table(np.int64(node.best), wk.ply)
    move = np.int64(node.best_move)
    store(ctx, header_at(ctx.header).age, fr.position.key, move, score, np.int64(node.eval), 0, bound)


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
        node.eval = _static_eval(ctx, wk, pos, data)
        node.best = node.eval
        if node.best >= node.beta:
            wk.value = np.int64(node.best)
            if hd.options.tt and data == U0:
                _store_quiescence(ctx, wk, frame, BOUND_LOWER)
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
    prune = header_at(ctx.header).options.see_pruning != 0 and not node.in_check
    while node.cursor < node.end:
        move = take_best(node)
        if prune and not see_at_least(tb, fr.position, move, 0):
            continue
        node.moves_done += 1
        fr.visit.move = move
        fr.visit.resume = STATE_QCHILD
        child = frame_at(frame + FRAME_SIZE)
        make_move(tb, fr.position, child.position, move)
        prefetch_entry(ctx, child.position.key)
        set_child(ctx, wk, frame, -np.int64(node.beta), -np.int64(node.alpha), 0, np.int64(node.type))
        return DO_CHILD
    if node.in_check and node.moves_done == 0:
        wk.value = wk.ply - MATE
        return DO_RETURN
    wk.value = np.int64(node.best)
    if header_at(ctx.header).options.tt:
        _store_quiescence(ctx, wk, frame, BOUND_EXACT if node.best > node.entry_alpha else BOUND_UPPER)
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
                    _store_quiescence(ctx, wk, frame, BOUND_LOWER)
                return DO_RETURN
            _update_pv(node, frame_at(frame + FRAME_SIZE), np.int64(fr.visit.move))
    return DO_MOVES
