"""The move picker, which generates and orders a node's moves in stages.

Its state is part of the node, so at an open node any worker that holds the lock can take the next move. The move list
holds `score << 16 | move`, so that the best move is the greatest entry.
"""

import numpy as np

from psearch_core.chess.board.attacks import move_from, move_kind
from psearch_core.chess.board.checks import gives_check_at
from psearch_core.chess.board.movegen import (
    generate_captures,
    generate_quiet_checks,
    generate_quiets,
    generate_underpromotions,
    is_legal,
)
from psearch_core.chess.board.position import piece_on
from psearch_core.chess.ordering.history import capture_history, is_quiet, quiet_history
from psearch_core.chess.ordering.see import captured_value, see_at_least
from psearch_core.constants import HISTORY_MAX, KIND_PROMOTE, MOVE_MASK, NO_MOVE, NO_SCORE, SKIP_NOTHING, SKIP_QUIETS
from psearch_core.records import MAX_MOVES, node_dtype, offset_of
from psearch_core.toolchain.intrinsics import address, check, place_of_greatest
from psearch_core.toolchain.jit import kernel
from psearch_core.views import Header, Learning, Node, Position, Stack, Tables, i64, void

(
    PICK_TT,
    PICK_CAPTURES_START,
    PICK_CAPTURES,
    PICK_KILLER_1,
    PICK_KILLER_2,
    PICK_QUIETS_START,
    PICK_QUIETS,
    PICK_BAD_CAPTURES_START,
    PICK_BAD_CAPTURES,
    PICK_LIST,
    PICK_DONE,
) = range(11)


# Weights of captures. The captured piece counts most: one more pawn outweighs any history. The attacker, 0 to 5, breaks
# ties.
_VICTIM_WEIGHT = 8
_HISTORY_SHIFT = 4
_PROMOTION_STEP = 1000
"""Score of a promotion for each step from knight to queen."""


@kernel(i64(i64, i64))
def scored(score, move):
    """Return an entry of the move list; -32,768 <= score < 32,768."""
    return (score << 16) | move


@kernel(void(Learning, Position, Node, i64, i64))
def score_captures(learning, pos, node, begin, end):
    """Score captures: most valuable victim first, then best history, then least valuable attacker."""
    for i in range(begin, end):
        move = node.moves[i]
        attacker = piece_on(pos, move_from(move))
        learnt = capture_history(learning, pos, move) >> _HISTORY_SHIFT
        score = _VICTIM_WEIGHT * captured_value(pos, move) + learnt - attacker
        if move_kind(move) >= KIND_PROMOTE:
            score += _PROMOTION_STEP * (move_kind(move) - KIND_PROMOTE)
        node.moves[i] = scored(score, move)


@kernel(void(Learning, Position, Node, i64, i64))
def score_quiets(learning, pos, node, begin, end):
    """Score quiet moves by history."""
    for i in range(begin, end):
        move = node.moves[i]
        if move_kind(move) >= KIND_PROMOTE:
            score = -4 * HISTORY_MAX + 1  # underpromotions come last
        else:
            score = quiet_history(learning, pos, node, move)
        node.moves[i] = scored(score, move)


_MOVES = offset_of(node_dtype, "moves")
_MANY = 9
"""Entries from which on whole vectors find the greatest one sooner. Vectors for every list take x1.006 of the time."""


@kernel(i64(Node))
def take_best(node):
    """Remove and return the best entry of moves[cursor:end]."""
    check(0 <= node.cursor < node.end <= MAX_MOVES, "a move is taken from the list of moves")
    begin = np.int64(node.cursor)
    count = np.int64(node.end) - begin
    if count >= _MANY:
        best = begin + place_of_greatest(address(node) + _MOVES + 4 * begin, count)
        greatest = np.int64(node.moves[best])
    else:
        best = begin
        greatest = np.int64(node.moves[begin])
        for i in range(begin + 1, node.end):
            # no branch, since it would be unpredictable; in 64 bits, since LLVM would make a branch otherwise
            entry = np.int64(node.moves[i])
            best = i if entry > greatest else best
            greatest = max(entry, greatest)
    node.moves[best] = node.moves[begin]
    node.moves[begin] = greatest
    node.cursor = begin + 1
    return greatest & MOVE_MASK


@kernel(void(Node, i64))
def begin_picking(node, first_stage):
    node.stage = first_stage
    node.cursor = 0
    node.end = 0
    node.bad_end = 0
    node.moves_done = 0
    node.deferred = 0
    node.skip = SKIP_NOTHING


@kernel(i64(Tables, Position, Node))
def _next_capture(tb, pos, node):
    """Return the next capture that does not lose material; set losing ones aside."""
    while node.cursor < node.end:
        move = take_best(node)
        if move == node.tt_move:
            continue
        if not see_at_least(tb, pos, move, 0):
            node.moves[node.cursor - 1] = node.moves[node.bad_end]  # keeps the tried moves together
            node.moves[node.bad_end] = move
            node.bad_end += 1
            continue
        return move
    return NO_MOVE


@kernel(i64(Tables, Position, Node))
def drop_quiets(tb, pos, node):
    """Drop the remaining quiet moves without check from the list, since all are pruned. Returns their number."""
    if node.stage != PICK_QUIETS:
        return 0  # they are not generated yet, and will not be
    kept = node.cursor
    dropped = 0
    for i in range(node.cursor, node.end):
        entry = node.moves[i]
        move = entry & MOVE_MASK
        if is_quiet(pos, move) and not gives_check_at(tb, pos, node, move):
            dropped += 1
        else:
            node.moves[kept] = entry
            kept += 1
    node.end = kept
    return dropped


@kernel(i64(Node))
def _next_quiet(node):
    while node.cursor < node.end:
        if node.skip == SKIP_NOTHING:
            move = take_best(node)
        else:
            move = node.moves[node.cursor] & MOVE_MASK  # hardly any will be searched, so sorting is not worth it
            node.cursor += 1
        if move != node.tt_move and move != node.killer_1 and move != node.killer_2:
            return move
    return NO_MOVE


@kernel(i64(Node))
def _next_in_order(node):
    """Return the next move of the list, without sorting and without the table's move."""
    while node.cursor < node.end:
        move = node.moves[node.cursor] & MOVE_MASK
        node.cursor += 1
        if move != node.tt_move or node.stage == PICK_LIST:
            return move
    return NO_MOVE


@kernel(i64(Tables, Learning, Position, Node))
def pick_move(tb, learning, pos, node):
    """Return the next move to try, or NO_MOVE if there is none.

    pos: position of the node, with pins set. A table move or killer that is not legal is skipped.
    """
    while True:
        stage = node.stage
        if stage == PICK_TT:
            node.stage = PICK_CAPTURES_START
            if node.tt_move != NO_MOVE:
                if is_legal(tb, pos, node.tt_move):
                    return node.tt_move
                node.tt_move = NO_MOVE
        elif stage == PICK_CAPTURES_START:
            node.end = generate_captures(tb, pos, node, 0)
            score_captures(learning, pos, node, 0, node.end)
            node.stage = PICK_CAPTURES
        elif stage == PICK_CAPTURES:
            move = _next_capture(tb, pos, node)
            if move != NO_MOVE:
                return move
            node.stage = PICK_KILLER_1
        elif stage in (PICK_KILLER_1, PICK_KILLER_2):
            node.stage = stage + 1
            move = node.killer_1 if stage == PICK_KILLER_1 else node.killer_2
            if move != NO_MOVE:
                if move != node.tt_move and is_quiet(pos, move) and is_legal(tb, pos, move):
                    return move
                # it was not tried, so the quiet moves must not skip it
                if stage == PICK_KILLER_1:
                    node.killer_1 = NO_MOVE
                else:
                    node.killer_2 = NO_MOVE
        elif stage == PICK_QUIETS_START:
            node.cursor = node.bad_end
            if node.skip == SKIP_NOTHING:
                node.end = generate_quiets(tb, pos, node, node.bad_end)
            elif node.skip == SKIP_QUIETS:
                node.end = generate_quiet_checks(tb, pos, node, node.bad_end)
            else:
                node.end = node.bad_end
            if node.skip == SKIP_QUIETS or (node.skip != SKIP_NOTHING and node.futility != NO_SCORE):
                # only moves that gain nothing are skipped, and these gain
                node.end = generate_underpromotions(tb, pos, node, node.end)
            score_quiets(learning, pos, node, node.cursor, node.end)
            node.stage = PICK_QUIETS
        elif stage == PICK_QUIETS:
            move = _next_quiet(node)
            if move != NO_MOVE:
                return move
            node.stage = PICK_BAD_CAPTURES_START
        elif stage == PICK_BAD_CAPTURES_START:
            node.cursor = 0
            node.end = node.bad_end
            node.stage = PICK_BAD_CAPTURES
        elif stage in (PICK_BAD_CAPTURES, PICK_LIST):
            move = _next_in_order(node)
            if move == NO_MOVE:
                node.stage = PICK_DONE
            return move
        else:
            return NO_MOVE


@kernel(void(Stack, Header, Node))
def begin_root_picking(st, hd, node):
    """Begin with the root's moves from its stack, best first, without those that already have a line (MultiPV)."""
    begin_picking(node, PICK_LIST)
    first = st.root_line
    count = hd.root_count - first
    for i in range(count):
        node.moves[i] = st.root_moves[first + i]
    node.end = count
