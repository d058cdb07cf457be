"""Killers and histories, which learn from cutoffs how to order moves.

All workers share the histories without locks; a lost update changes the order of moves a little (docs/decisions/004).
"""

import numpy as np

from psearch_core.chess.board.attacks import move_from, move_kind, move_to
from psearch_core.chess.board.position import code_on
from psearch_core.constants import HISTORY_MAX, KIND_EP, KIND_PROMOTE, MOVE_MASK, NO_MOVE
from psearch_core.toolchain.intrinsics import check
from psearch_core.toolchain.jit import kernel
from psearch_core.views import Learning, Node, Position, PruningRecord, Worker, boolean, i64, void


@kernel(boolean(Position, i64))
def is_quiet(pos, move):
    """Tell whether a move is neither a capture nor a promotion."""
    kind = move_kind(move)
    if kind == KIND_EP or kind >= KIND_PROMOTE:
        return False
    code = code_on(pos, move_to(move))
    # castling is written as king takes own rook
    return code == 0 or code >> 3 == pos.side


@kernel(i64(Position, i64))
def piece_to(pos, move):
    """Return moving piece and target square as a number below MOVED; 0 is no move."""
    return code_on(pos, move_from(move)) << 6 | move_to(move)


@kernel(i64(Node, i64))
def _escape(node, move):
    """Return the part of the history for a move: whether it leaves (2) and enters (1) an attacked square."""
    leaves = np.int64(node.threats >> np.uint64(move_from(move))) & 1
    return leaves << 1 | np.int64(node.threats >> np.uint64(move_to(move))) & 1


@kernel(i64(Learning, Position, Node, i64))
def quiet_history(learning, pos, node, move):
    """Return the history of a quiet move: that of the move itself, and those after the last two moves."""
    moved = piece_to(pos, move)
    return (
        learning.quiet[pos.side, _escape(node, move), move & 4095]
        + learning.continuation[node.cont_1, moved]
        + learning.continuation[node.cont_2, moved]
    )


@kernel(i64(i64, i64, i64))
def towards(old, change, limit):
    """Return a counter changed towards +-limit, by less the nearer it is."""
    check(abs(old) <= limit and abs(change) <= limit, "what is learnt stays within its limit")
    return old + change - old * abs(change) // limit


@kernel(void(Learning, Position, Node, i64, i64))
def _add_history(learning, pos, node, move, bonus):
    side = pos.side
    code = move & 4095
    moved = piece_to(pos, move)
    part = _escape(node, move)
    learning.quiet[side, part, code] = towards(learning.quiet[side, part, code], bonus, HISTORY_MAX)
    if node.cont_1 != 0:
        old = learning.continuation[node.cont_1, moved]
        learning.continuation[node.cont_1, moved] = towards(old, bonus, HISTORY_MAX)
    if node.cont_2 != 0:
        old = learning.continuation[node.cont_2, moved]
        learning.continuation[node.cont_2, moved] = towards(old, bonus, HISTORY_MAX)


@kernel(i64(Position, i64))
def _taken(pos, move):
    """Return the type of the captured piece, from 1; 0 for en passant and promotions without capture."""
    return code_on(pos, move_to(move)) & 7


@kernel(i64(Learning, Position, i64))
def capture_history(learning, pos, move):
    """Return the history of a capture."""
    return learning.capture[piece_to(pos, move), _taken(pos, move)]


@kernel(void(Learning, Position, i64, i64))
def _add_capture_history(learning, pos, move, bonus):
    moved, taken = piece_to(pos, move), _taken(pos, move)
    learning.capture[moved, taken] = towards(learning.capture[moved, taken], bonus, HISTORY_MAX)


@kernel(i64(i64, i64))
def cutoff_bonus(depth, linear):
    """Return the bonus for the history of a move that caused a cutoff at this depth."""
    return min(depth * (8 * depth + linear), HISTORY_MAX // 4)


@kernel(void(Worker, i64, i64))
def keep_killer(wk, ply, move):
    """Make a move the first killer of a ply; the old first killer becomes the second."""
    if wk.killers[ply, 0] != move:
        wk.killers[ply, 1] = wk.killers[ply, 0]
        wk.killers[ply, 0] = move


@kernel(void(Worker, PruningRecord, Learning, Position, Node, i64, i64, i64, i64))
def learn_cutoff(wk, pruning, learning, pos, node, move, ply, captures_begun, quiets_begun):
    """Reward a move that caused a cutoff, and penalise the moves of its kind tried before it.

    captures_begun, quiets_begun: 1 if the move came from the list of captures, or of quiet moves; moves before the
    cursor were tried.
    """
    bonus = cutoff_bonus(node.depth, pruning.history_linear)
    malus = -bonus * pruning.history_malus // 100
    if not is_quiet(pos, move):
        _add_capture_history(learning, pos, move, bonus)
        if captures_begun:
            for i in range(node.bad_end, node.cursor):
                tried = node.moves[i] & MOVE_MASK
                if tried != move and tried != node.tt_move:
                    _add_capture_history(learning, pos, tried, malus)
        return
    keep_killer(wk, ply, move)
    _add_history(learning, pos, node, move, bonus)
    if quiets_begun == 0:
        return
    for tried in (node.tt_move, node.killer_1, node.killer_2):
        if tried != NO_MOVE and tried != move and is_quiet(pos, tried):
            _add_history(learning, pos, node, tried, malus)
    for i in range(node.bad_end, node.cursor):
        tried = node.moves[i] & MOVE_MASK
        if tried == move:
            break
        if tried == node.tt_move or tried == node.killer_1 or tried == node.killer_2:
            continue
        if is_quiet(pos, tried):
            _add_history(learning, pos, node, tried, malus)
