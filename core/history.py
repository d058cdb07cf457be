"""What the search learns from cutoffs about the order of quiet moves: killers and histories.

The histories are shared by all workers without locks: an update that gets lost changes the order of moves a little
(docs/decisions/004).
"""

from __future__ import annotations

import numpy as np

from psearch.core.bits import move_from, move_kind, move_to
from psearch.core.constants import HISTORY_MAX, KIND_EP, KIND_PROMOTE, MOVE_MASK, NO_MOVE
from psearch.core.jit import kernel
from psearch.core.records import Learning, Node, Position, Worker, boolean, i64, void


@kernel(boolean(Position, i64))
def is_quiet(pos, move):
    """Neither a capture nor a promotion."""
    kind = move_kind(move)
    if kind == KIND_EP or kind >= KIND_PROMOTE:
        return False
    code = np.int64(pos.board[move_to(move)])
    # castling is written as king takes own rook
    return code == 0 or code >> 3 == pos.side


@kernel(i64(Position, i64))
def piece_to(pos, move):
    """The piece that moves and where to, as one number below MOVED; 0 is no move."""
    return np.int64(pos.board[move_from(move)]) << 6 | move_to(move)


@kernel(i64(Learning, Position, Node, i64))
def quiet_history(learning, pos, node, move):
    """How well a quiet move has done: by itself, and after the two moves that led to the node."""
    moved = piece_to(pos, move)
    return (
        np.int64(learning.quiet[np.int64(pos.side), move & 4095])
        + learning.continuation[node.cont_1, moved]
        + learning.continuation[node.cont_2, moved]
    )


@kernel(i64(i64, i64))
def _towards(old, bonus):
    """A counter moved towards +-HISTORY_MAX, the slower the nearer it is."""
    return old + bonus - old * abs(bonus) // HISTORY_MAX


@kernel(void(Learning, Position, Node, i64, i64))
def _add_history(learning, pos, node, move, bonus):
    side = np.int64(pos.side)
    code = move & 4095
    moved = piece_to(pos, move)
    learning.quiet[side, code] = _towards(np.int64(learning.quiet[side, code]), bonus)
    if node.cont_1 != 0:
        old = np.int64(learning.continuation[node.cont_1, moved])
        learning.continuation[node.cont_1, moved] = _towards(old, bonus)
    if node.cont_2 != 0:
        old = np.int64(learning.continuation[node.cont_2, moved])
        learning.continuation[node.cont_2, moved] = _towards(old, bonus)


@kernel(void(Worker, Learning, Position, Node, i64, i64, i64))
def learn_cutoff(wk, learning, pos, node, move, ply, quiets_begun):
    """Remember a quiet move that cut, and mark down the quiet moves tried before it.

    quiets_begun: 1 if it came from the list of quiet moves, of which those before the cursor were tried.
    """
    if not is_quiet(pos, move):
        return
    if wk.killers[ply, 0] != move:
        wk.killers[ply, 1] = wk.killers[ply, 0]
        wk.killers[ply, 0] = move
    depth = np.int64(node.depth)
    bonus = min(depth * depth * 8, HISTORY_MAX // 4)
    _add_history(learning, pos, node, move, bonus)
    if quiets_begun == 0:
        return
    for tried in (np.int64(node.tt_move), np.int64(node.killer_1), np.int64(node.killer_2)):
        if tried != NO_MOVE and tried != move and is_quiet(pos, tried):
            _add_history(learning, pos, node, tried, -bonus)
    for i in range(node.bad_end, node.cursor):
        tried = np.int64(node.moves[i]) & MOVE_MASK
        if tried == move:
            break
        if tried == node.tt_move or tried == node.killer_1 or tried == node.killer_2:
            continue
        if is_quiet(pos, tried):
            _add_history(learning, pos, node, tried, -bonus)
