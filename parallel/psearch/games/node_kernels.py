"""Kernels for the nodes of a user's game. They replace those of `psearch_core.game`, and have their names, signatures
and contracts.

The search finds the exact minimax value of its depth with any number of workers: it prunes by bounds only, does not
reduce or extend, and uses an entry of the table only for nodes of the same depth. An entry that depends on ended games
alone (`horizon` 0; `_TO_THE_END` in the entry's field for the evaluation) is valid for every greater depth, too. A root
without horizon ends the search.

Moves of a game count from 0, those of the search from 1. A position's `key` is the game's key, mixed. A mistake in the
game is written into the last word of the plug-in's memory and ends the search.
"""

import numpy as np

from psearch.games.game_file import (
    LARGE_EVALUATION,
    LARGE_MOVE,
    LARGE_RESULT,
    LARGEST_MOVE,
    MOST_SCORE,
    NO_MOVES,
    POSITION_BYTES,
    TOO_MANY_MOVES,
)
from psearch.games.rules import ended, evaluate, found_at, key, make, most_moves, moves, result
from psearch.scheduler.splitting import stop_all
from psearch_core.arithmetic import splitmix64
from psearch_core.chess.ordering.history import cutoff_bonus, keep_killer, towards
from psearch_core.chess.ordering.movepick import (
    PICK_CAPTURES_START,
    PICK_KILLER_2,
    PICK_LIST,
    PICK_QUIETS,
    PICK_QUIETS_START,
    PICK_TT,
    begin_picking,
    begin_root_picking,
    scored,
)
from psearch_core.chess.search.children import begin_visit, link_child
from psearch_core.chess.search.enter_node import after_move as take_value
from psearch_core.chess.search.enter_node import begin_node, bound_found
from psearch_core.chess.search.next_move import put_back, take_deferred
from psearch_core.chess.search.tt import (
    entry_bound,
    entry_depth,
    entry_eval,
    entry_move,
    entry_score,
    prefetch_entry,
    probe_table,
    store,
)
from psearch_core.constants import (
    BOUND_EXACT,
    BOUND_LOWER,
    DO_CUTOFF,
    DO_MOVES,
    DO_QUIESCENCE,
    DO_RETURN,
    HISTORY_MAX,
    MOVE_MASK,
    NO_MOVE,
    NO_SCORE,
    U0,
)
from psearch_core.records import MAX_MOVES, MAX_PLY, offset_of, position_dtype
from psearch_core.toolchain.intrinsics import address, compare_and_swap, copy_record, field_address
from psearch_core.toolchain.jit import kernel
from psearch_core.views import (
    Context,
    Frame,
    Learning,
    Node,
    Position,
    Tables,
    Worker,
    above,
    boolean,
    frame_of,
    header_of,
    i64,
    stack_of,
    u64,
    void,
)

_list_of = field_address(Node, "moves")
if offset_of(position_dtype, "key") < POSITION_BYTES:
    raise AssertionError("a game's position lies before the key")
_FOUND_OFFSET = 2 * MAX_MOVES
"""Offset in the list of moves, in bytes, at which a game writes its moves. They have 2 bytes each, entries of the list
4, so converting them from the front never overwrites a move that has not been read."""
_TO_THE_END, _TO_A_HORIZON = 1, 0
"""Values of a table entry's field for the evaluation: the score depends on ended games alone, or on a horizon."""
_TABLE_MOVE_SCORE, _KILLER_1_SCORE, _KILLER_2_SCORE = 32767, 32766, 32765
_LEAST_SCORE = -32768
_PLACE_WEIGHT = 400
"""Penalty of a move for each place in the game's own list, in units of history. At depths 13 and 11 three positions
each of Connect Four and Othello took 2.22 and 1.10 million nodes with 400, 2.21 and 1.33 with 0 (history alone), 2.27
and 1.08 by the game's order alone."""
_HISTORY_SLOTS = 4096
_NUMBER_SHIFT = 8


@kernel(void(Context, i64, i64))
def _mistake(ctx, kind, number):
    """Record a mistake of the game and end the search. The first mistake is kept."""
    compare_and_swap(ctx.plug_in + 8 * (ctx.plug_in_words - 1), 0, (number << _NUMBER_SHIFT) | kind)
    stop_all(ctx)


@kernel(boolean(u64, i64, i64, i64))
def _settles(data, depth, alpha, beta):
    """Tell whether an entry of the table is sufficient for this depth and window."""
    if data == U0:
        return False
    found = entry_depth(data)
    if found != depth and (found > depth or entry_eval(data) != _TO_THE_END):
        return False
    bound, score = entry_bound(data), entry_score(data, 0)
    return bound == BOUND_EXACT or (score >= beta if bound == BOUND_LOWER else score <= alpha)


@kernel(i64(Context, Worker, Frame))
def enter(ctx, wk, frame):
    node = frame.node
    pos = frame.position
    ply = wk.ply
    node.pv_length = 0
    frame.horizon = 0
    if ply > wk.counters.seldepth:
        wk.counters.seldepth = ply
    if ply > 0 and ended(address(pos)):
        wk.value = result(address(pos))
        if abs(wk.value) > MOST_SCORE:
            _mistake(ctx, LARGE_RESULT, wk.value)
            wk.value = 0
        return DO_RETURN
    begin_node(node, ply)
    node.in_check = 0
    node.eval = NO_SCORE
    if ply > 0 and (node.depth <= 0 or ply >= MAX_PLY - 1):
        return DO_QUIESCENCE
    data = probe_table(ctx, pos)
    if data != U0:
        node.tt_move = entry_move(data)
        node.tt_bound = entry_bound(data)
        node.tt_depth = entry_depth(data)
        alpha, beta = node.alpha, node.beta
        if ply > 0 and beta - alpha == 1 and _settles(data, node.depth, alpha, beta):
            frame.horizon = 0 if entry_eval(data) == _TO_THE_END else 1
            wk.value = entry_score(data, 0)
            return DO_RETURN
    return DO_MOVES


@kernel(i64(Context, Worker, Frame))
def enter_quiescence(ctx, wk, frame):
    """Return the game's own evaluation of a leaf."""
    wk.counters.qnodes += 1
    value = evaluate(address(frame.position))
    if abs(value) >= MOST_SCORE:
        _mistake(ctx, LARGE_EVALUATION, value)
        value = 0
    frame.horizon = 1
    wk.value = value
    return DO_RETURN


@kernel(void(Context, Worker, Frame))
def begin_moves(ctx, wk, frame):
    node = frame.node
    hd = header_of(ctx)
    if wk.ply == 0:
        begin_root_picking(stack_of(ctx, wk.stack), hd, node)
        return
    begin_picking(node, PICK_TT)
    where = _list_of(node) + _FOUND_OFFSET
    count = moves(address(frame.position), where)
    if count <= 0 or count > most_moves():
        _mistake(ctx, NO_MOVES if count == 0 else TOO_MANY_MOVES, count)
        return
    found = found_at(where).moves
    killer_1, killer_2 = wk.killers[wk.ply, 0], wk.killers[wk.ply, 1]
    node.killer_1 = NO_MOVE
    node.killer_2 = NO_MOVE
    tt_move = NO_MOVE
    for i in range(count):
        move = np.int64(found[i]) + 1
        if move > LARGEST_MOVE + 1:
            _mistake(ctx, LARGE_MOVE, move - 1)
            return
        history = np.int64(hd.learning.quiet[node.ply & 1, 0, move & (_HISTORY_SLOTS - 1)])
        score = max(history - _PLACE_WEIGHT * i, np.int64(_LEAST_SCORE))
        if move == node.tt_move:
            tt_move = move
            score = np.int64(_TABLE_MOVE_SCORE)
        elif move == killer_1:
            node.killer_1 = move
            score = np.int64(_KILLER_1_SCORE)
        elif move == killer_2:
            node.killer_2 = move
            score = np.int64(_KILLER_2_SCORE)
        node.moves[i] = scored(score, move)
    node.tt_move = tt_move
    node.end = count


@kernel(i64(Node))
def _take_best(node):
    """Take the first entry of moves[cursor:end] with the best score; the others keep their order."""
    best = np.int64(node.cursor)
    taken = np.int64(node.moves[best])
    for i in range(node.cursor + 1, node.end):
        entry = np.int64(node.moves[i])
        if entry >> 16 > taken >> 16:
            best = i
            taken = entry
    for i in range(best, node.cursor, -1):
        node.moves[i] = node.moves[i - 1]
    node.moves[node.cursor] = taken
    node.cursor += 1
    return taken & MOVE_MASK


@kernel(i64(Context, Worker, Position, Node, i64))
def next_move(ctx, wk, pos, node, home):
    if node.cursor == node.end:
        return take_deferred(node)
    if node.stage == PICK_LIST:
        node.cursor += 1
        return np.int64(node.moves[node.cursor - 1]) & MOVE_MASK
    move = _take_best(node)
    # table move and killers are the candidates for a cutoff
    if move == node.tt_move:
        node.stage = PICK_CAPTURES_START
    elif move == node.killer_1:
        node.stage = PICK_KILLER_2
    elif move == node.killer_2:
        node.stage = PICK_QUIETS_START
    else:
        node.stage = PICK_QUIETS
    return move


@kernel(boolean(Tables, Position, Node, i64))
def defer_move(tb, pos, node, move):
    return put_back(node, np.int64(node.end), move)


@kernel(void(Context, Frame, i64))
def make_child(ctx, frame, move):
    pos = above(frame).position
    copy_record(pos, frame.position)
    make(address(pos), move - 1)
    pos.key = splitmix64(key(address(pos)))
    prefetch_entry(ctx, pos.key)


@kernel(i64(Context, Worker, Frame, Node))
def child_depth(ctx, wk, frame, node):
    depth = np.int64(node.depth) - 1
    frame.visit.new_depth = depth
    return depth


@kernel(void(Context, Worker, Frame, Node, i64, i64, i64, i64, i64, i64))
def push_move(ctx, wk, frame, node, stage, alpha, beta, depth, split_type, kannan_type):
    begin_visit(frame, stage, alpha, beta, depth)
    link_child(ctx, wk, frame, -beta, -alpha, depth, split_type, kannan_type)


@kernel(i64(Context, Worker, Frame, Node, i64))
def after_move(ctx, wk, frame, node, value):
    """Take a move's value. A cutoff depends on this move alone, any other value on all moves."""
    horizon = above(frame).horizon
    home = frame_of(ctx, frame.visit.home)
    action = take_value(ctx, wk, frame, node, value)
    if action == DO_CUTOFF:
        home.horizon = horizon
    elif action == DO_MOVES:
        home.horizon |= horizon
    return action


@kernel(void(Learning, Node, i64, i64))
def _add_history(learning, node, move, bonus):
    slot = move & (_HISTORY_SLOTS - 1)
    side = node.ply & 1
    learning.quiet[side, 0, slot] = towards(np.int64(learning.quiet[side, 0, slot]), bonus, HISTORY_MAX)


@kernel(void(Context, Worker, Frame, Node))
def learn(ctx, wk, frame, node):
    move = frame.visit.move
    bonus = cutoff_bonus(node.depth, 0)
    learning = header_of(ctx).learning
    keep_killer(wk, wk.ply, move)
    _add_history(learning, node, move, bonus)
    for i in range(node.cursor):
        tried = np.int64(node.moves[i]) & MOVE_MASK
        if tried == move:
            break
        _add_history(learning, node, tried, -bonus)


@kernel(void(Context, Worker, Frame))
def finish(ctx, wk, frame):
    node = frame.node
    hd = header_of(ctx)
    if node.moves_done == 0:  # a mistake of the game has stopped the search
        wk.value = 0
        frame.horizon = 1
        return
    best = np.int64(node.best)
    wk.value = best
    if wk.ply == 0 and node.end < hd.legal_root_moves:
        return  # the value of a part of the moves is not that of the position
    if hd.options.tt:
        rests_on = _TO_A_HORIZON if frame.horizon else _TO_THE_END
        store(ctx, hd.age, frame.position.key, node.best_move, best, rests_on, node.depth, bound_found(node))


@kernel(boolean(Context, Frame))
def is_exhausted(ctx, frame):
    return frame.horizon == 0


# -- not used by games ----------------------------------------------------------------------------------------------


@kernel(void(Context, Worker, Frame, Node, i64, i64))
def push_null(ctx, wk, frame, node, split_type, kannan_type):
    return


@kernel(i64(Context, Worker, Frame))
def after_null(ctx, wk, frame):
    return DO_RETURN


@kernel(i64(Context, Worker, Frame))
def finish_pass(ctx, wk, frame):
    return DO_RETURN


@kernel(i64(Context, Worker, Frame))
def next_quiescence(ctx, wk, frame):
    return DO_RETURN


@kernel(i64(Context, Worker, Frame, i64))
def after_quiescence(ctx, wk, frame, value):
    return DO_RETURN
