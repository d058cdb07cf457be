"""Quiescence: captures and queen promotions until the position is quiet, and all evasions in check.

With a dozen queens on each side, captures would never end. So on a board that is more crowded than in any game, a
quiescence search has a budget of positions, which each node divides equally among its moves. A move's share does not
depend on window, order of moves or worker, and the tree is not much larger than the budget. A node whose budget is
smaller than its number of captures stands pat.
"""

import numpy as np

from psearch_core.chess.board.movegen import generate_captures, generate_quiets
from psearch_core.chess.board.position import find_pins, is_crowded, likely_key
from psearch_core.chess.ordering.movepick import PICK_TT, begin_picking, score_captures, score_quiets, scored, take_best
from psearch_core.chess.ordering.see import see_at_least
from psearch_core.chess.pruning.counters import count_pruned, count_tried
from psearch_core.chess.pruning.move_pruning import prunes_capture, saves_draw
from psearch_core.chess.pruning.sound import skips_soundly
from psearch_core.chess.search.children import make_child, set_child, update_pv
from psearch_core.chess.search.correction import corrected, prefetch_corrections
from psearch_core.chess.search.tt import (
    cuts,
    early_eval,
    entry_move,
    entry_score,
    prefetch_entry,
    probe_table,
    static_eval,
    store_result,
)
from psearch_core.constants import (
    BOUND_EXACT,
    BOUND_LOWER,
    BOUND_UPPER,
    DO_CHILD,
    DO_MOVES,
    DO_RETURN,
    DRAW,
    MATE,
    MOVE_MASK,
    NO_SCORE,
    PV_NODE,
    QUIESCENCE_BUDGET,
    STATE_QCHILD,
    U0,
    UNLIMITED,
)
from psearch_core.techniques import SEE_QUIESCENCE
from psearch_core.toolchain.jit import kernel
from psearch_core.views import Context, Frame, Node, Position, Worker, above, boolean, header_of, i64, tables_of

_TABLE_MOVE_SCORE = (1 << 15) - 1
"""The greatest score of a move list."""
_LIFT = 1 << 14
"""Score added to captures, so that they come before most quiet moves but after the table's move."""


@kernel(i64(Position, Node))
def quiescence_budget(pos, node):
    """Return how many positions may be searched below a node; unlimited unless the board is crowded. The spent budget
    is the node's negative depth, so a search that began on a crowded board keeps its budget."""
    if node.depth == 0 and not is_crowded(pos):
        return UNLIMITED
    return QUIESCENCE_BUDGET + node.depth


@kernel(i64(i64, i64))
def quiescence_share(budget, moves):
    """Return the depth of a child, which is its share of the budget, for this number of moves."""
    return 0 if budget == UNLIMITED else budget // moves - QUIESCENCE_BUDGET


@kernel(boolean(Context))
def _uses_table(ctx):
    """Tell whether quiescence uses the table; the modes plain and sound stand pat on the evaluation itself."""
    options = header_of(ctx).options
    return options.tt != 0 and options.pruning.table_in_quiescence != 0


@kernel(i64(Context, Worker, Frame))
def enter_quiescence(ctx, wk, frame):
    """Stand pat, or generate captures, or in check all evasions. Returns DO_RETURN or DO_MOVES."""
    node = frame.node
    pos = frame.position
    hd = header_of(ctx)
    tb = tables_of(ctx)
    ply = wk.ply
    wk.counters.qnodes += 1
    budget = quiescence_budget(pos, node)
    if node.in_check and budget == 0:
        wk.value = DRAW  # like at the end of the stack
        return DO_RETURN
    uses_table = _uses_table(ctx)
    slots = prefetch_corrections(hd.options.pruning, hd.learning, pos, node)
    early = early_eval(ctx, wk, node, pos)
    data = probe_table(ctx, pos) if uses_table else U0
    if data != U0:
        if node.beta - node.alpha == 1 and cuts(data, 0, node.alpha, node.beta, ply):
            wk.value = entry_score(data, ply)
            return DO_RETURN
        node.tt_move = entry_move(data)
    node.eval = NO_SCORE
    node.raw_eval = NO_SCORE
    if not node.in_check:
        node.raw_eval = static_eval(ctx, wk, pos, data, early)
        node.eval = corrected(hd.options.pruning, hd.learning, tb, pos, slots, node.raw_eval)
        node.best = node.eval
        if node.best >= node.beta:
            wk.value = node.best
            if uses_table and data == U0:
                store_result(ctx, wk, frame, node.best, 0, BOUND_LOWER)
            return DO_RETURN
        node.alpha = max(node.alpha, node.best)
    begin_picking(node, PICK_TT)
    find_pins(tb, pos)
    captures_end = generate_captures(tb, pos, node, 0)
    score_captures(hd.learning, pos, node, 0, captures_end)
    node.end = captures_end
    if not node.in_check and budget < captures_end:
        node.end = 0  # the budget is too small for all captures
    if node.in_check:
        node.end = generate_quiets(tb, pos, node, captures_end)
        score_quiets(hd.learning, pos, node, captures_end, node.end)
        for i in range(captures_end):  # captures come first, although histories may score as high
            node.moves[i] += scored(_LIFT, 0)
    for i in range(node.end):
        if node.moves[i] & MOVE_MASK == node.tt_move:
            node.moves[i] = scored(_TABLE_MOVE_SCORE, node.tt_move)
    return DO_MOVES


@kernel(i64(Context, Worker, Frame))
def next_quiescence(ctx, wk, frame):
    """Make the next capture or evasion: DO_CHILD, or DO_RETURN if there is none."""
    node = frame.node
    tb = tables_of(ctx)
    pruning = header_of(ctx).options.pruning
    prune = header_of(ctx).options.see_pruning != 0 and not node.in_check
    sound = pruning.sound_delta != 0
    while node.cursor < node.end:
        move = take_best(node)
        if sound and skips_soundly(ctx, wk, wk.stack, frame.position, node, move):
            continue
        if not node.in_check and prunes_capture(wk, pruning, tb, frame.position, node, move):
            continue
        prefetch_entry(ctx, likely_key(tb, frame.position, move))  # memory is slow, so start loading before SEE
        if prune:
            count_tried(wk, SEE_QUIESCENCE)
            if not see_at_least(tb, frame.position, move, 0) and not saves_draw(tb, frame.position, move, node.best):
                count_pruned(wk, SEE_QUIESCENCE)
                continue
        node.moves_done += 1
        frame.visit.move = move
        frame.visit.resume = STATE_QCHILD
        make_child(ctx, frame, move)
        alpha, beta = node.alpha, node.beta
        depth = quiescence_share(quiescence_budget(frame.position, node), np.int64(node.end))
        set_child(ctx, wk, frame, node, -beta, -alpha, depth, node.split_type, node.kannan_type)
        return DO_CHILD
    if node.in_check and node.moves_done == 0:
        wk.value = wk.ply - MATE
        return DO_RETURN
    wk.value = node.best
    if _uses_table(ctx):
        store_result(ctx, wk, frame, node.best, 0, BOUND_EXACT if node.best > node.entry_alpha else BOUND_UPPER)
    return DO_RETURN


@kernel(i64(Context, Worker, Frame, i64))
def after_quiescence(ctx, wk, frame, value):
    """Update the node by a capture's value, in the node's view: DO_MOVES or DO_RETURN."""
    node = frame.node
    if value > node.best:
        node.best = value
        if value > node.alpha:
            node.best_move = frame.visit.move
            node.alpha = value
            if node.kannan_type == PV_NODE:
                update_pv(node, above(frame), frame.visit.move)  # also at a cutoff, as in `after_move`
            if value >= node.beta:
                wk.value = value
                if _uses_table(ctx):
                    store_result(ctx, wk, frame, node.best, 0, BOUND_LOWER)
                return DO_RETURN
    return DO_MOVES
