"""Selective search at a move: whether it is left out, decided when the picker gives it, before it is made.

At an open node this happens under its lock. Sources as in `node_pruning.py`.
"""

from __future__ import annotations

from psearch_core.chess.board.bits import move_from, move_kind, move_to
from psearch_core.chess.board.checks import gives_check
from psearch_core.chess.board.position import code_on, has_pieces, piece_on
from psearch_core.chess.evaluation.endgames import leaves_no_win
from psearch_core.chess.ordering.history import is_quiet, quiet_history
from psearch_core.chess.ordering.movepick import drop_quiets
from psearch_core.chess.ordering.see import SEE_VALUES, captured_value, see_at_least, see_value
from psearch_core.chess.pruning.counters import count_pruned, count_tried
from psearch_core.chess.pruning.reductions import base_reduction
from psearch_core.constants import (
    BISHOP,
    DRAW,
    KIND_EP,
    KIND_PROMOTE,
    KNIGHT,
    MATE_IN_MAX_PLY,
    NO_SCORE,
    PASS_PROBCUT,
    PAWN,
    QUEEN,
    ROOK,
    SKIP_QUIETS,
)
from psearch_core.records import PLY_SHIFT
from psearch_core.scores import clear_of_mates, is_mate_bound
from psearch_core.techniques import (
    DELTA,
    EXTENDED_FUTILITY,
    FUTILITY,
    HISTORY_PRUNING,
    LMP,
    MOVE_FUTILITY,
    SEE_CAPTURES,
    SEE_QUIETS,
)
from psearch_core.toolchain.intrinsics import popcount
from psearch_core.toolchain.jit import kernel
from psearch_core.views import Learning, Node, Position, PruningRecord, Tables, Worker, boolean, i64, void


@kernel(i64(Position, i64))
def _material_gain(pos, move):
    """What a move takes, and what a pawn becomes."""
    gain = captured_value(pos, move)
    kind = move_kind(move)
    if kind >= KIND_PROMOTE:
        gain += see_value(kind - KIND_PROMOTE + KNIGHT) - SEE_VALUES[PAWN]
    return gain


@kernel(boolean(PruningRecord, Position, i64))
def _is_exempt(pruning, pos, move):
    """Moves that change more than they take: the exemptions from futility, but for checks."""
    side = pos.side
    to = move_to(move)
    relative_rank = to >> 3 if side == 0 else 7 - (to >> 3)
    piece = piece_on(pos, move_from(move))
    if pruning.exempt_seventh and relative_rank == 6 and piece in (PAWN, ROOK, QUEEN):
        return True
    if is_quiet(pos, move) or move_kind(move) == KIND_EP:
        return False
    code = code_on(pos, to)
    captured = (code & 7) - 1
    if pruning.exempt_queen and captured == QUEEN:
        return True
    if pruning.exempt_advanced_pawn and captured == PAWN and 1 <= relative_rank <= 2:
        return True
    return (
        pruning.exempt_bishop_pair != 0
        and captured == BISHOP
        and popcount(pos.piece_bb[BISHOP] & pos.color_bb[1 - side]) == 2
    )


@kernel(boolean(Tables, Position, i64, i64))
def saves_draw(tb, pos, move, bound):
    """Tell whether a capture is worth a draw, and so more than a bound that rests on material: the other side is known
    not to win with what is left."""
    return bound < DRAW and leaves_no_win(tb, pos, move)


@kernel(boolean(Worker, PruningRecord, Tables, Position, Node, i64))
def _is_futile(wk, pruning, tb, pos, node, move):
    """Heinz's condition at a node that has a `futility`; the bound goes into `best`."""
    technique = FUTILITY if node.depth == 1 else EXTENDED_FUTILITY
    count_tried(wk, technique)
    quiet = is_quiet(pos, move)
    if not quiet and not pruning.futility_captures:
        return False
    bound = node.futility
    if not quiet:
        bound += _material_gain(pos, move)
    if bound > node.alpha or _is_exempt(pruning, pos, move):
        return False
    if pruning.exempt_checks and gives_check(tb, pos, move):
        return False
    if not quiet and saves_draw(tb, pos, move, max(bound, node.best)):
        return False
    if bound > node.best:
        node.best = bound
    count_pruned(wk, technique)
    return True


@kernel(void(Worker, Tables, Position, Node, i64))
def _prune_quiets(wk, tb, pos, node, technique):
    """This quiet move and all after it are pruned, but for those that give check."""
    node.skip = SKIP_QUIETS
    dropped = drop_quiets(tb, pos, node)
    wk.pruned[technique, 0] += dropped
    wk.pruned[technique, 1] += dropped + 1


@kernel(boolean(Worker, PruningRecord, Learning, Tables, Position, Node, i64))
def _prunes_quiet(wk, pruning, learning, tb, pos, node, move):
    """Late move pruning, move futility, history pruning and SEE pruning of a quiet move."""
    depth = node.depth
    index = node.moves_done
    if node.in_check or gives_check(tb, pos, move):
        return False
    if pruning.lmp and depth <= pruning.lmp_depth:
        count_tried(wk, LMP)
        if index >= (pruning.lmp_base + depth * depth) // (2 - node.improving):
            _prune_quiets(wk, tb, pos, node, LMP)
            return True
    reduced = max(0, depth - 1 - (base_reduction(pruning, depth, index) >> PLY_SHIFT))
    if pruning.move_futility and reduced <= pruning.move_futility_depth:
        count_tried(wk, MOVE_FUTILITY)
        margin = pruning.move_futility_base + pruning.move_futility_margin * reduced
        bound = clear_of_mates(node.eval + margin)
        if bound <= node.alpha:
            _prune_quiets(wk, tb, pos, node, MOVE_FUTILITY)
            if bound > node.best:
                node.best = bound
            return True
    if pruning.history_pruning and reduced <= pruning.history_pruning_depth:
        count_tried(wk, HISTORY_PRUNING)
        if quiet_history(learning, pos, node, move) < -pruning.history_pruning_margin * (reduced + 1):
            count_pruned(wk, HISTORY_PRUNING)
            return True
    if pruning.see_quiets and reduced <= pruning.see_depth:
        count_tried(wk, SEE_QUIETS)
        if not see_at_least(tb, pos, move, -pruning.see_quiets_margin * reduced * reduced):
            count_pruned(wk, SEE_QUIETS)
            return True
    return False


@kernel(boolean(Worker, PruningRecord, Learning, Tables, Position, Node, i64))
def prunes_move(wk, pruning, learning, tb, pos, node, move):
    """Tell whether a move that the picker gives is left out. Under the lock if the node is open."""
    if node.pass_kind == PASS_PROBCUT:
        return is_quiet(pos, move) or not see_at_least(tb, pos, move, node.see_threshold)
    if node.ply == 0:
        return False
    if node.futility != NO_SCORE and _is_futile(wk, pruning, tb, pos, node, move):
        return True
    if node.best <= -MATE_IN_MAX_PLY or not has_pieces(pos, pos.side):
        return False
    if is_quiet(pos, move):
        return _prunes_quiet(wk, pruning, learning, tb, pos, node, move)
    if pruning.see_captures and node.depth <= pruning.see_depth:
        count_tried(wk, SEE_CAPTURES)
        loses = not see_at_least(tb, pos, move, -pruning.see_captures_margin * node.depth)
        if loses and not saves_draw(tb, pos, move, node.best):
            count_pruned(wk, SEE_CAPTURES)
            return True
    return False


@kernel(boolean(Worker, PruningRecord, Tables, Position, Node, i64))
def prunes_capture(wk, pruning, tb, pos, node, move):
    """Tell whether delta pruning leaves out a capture in quiescence: what a capture wins, and a margin, do not reach
    alpha."""
    if not pruning.delta or is_mate_bound(node.alpha):
        return False
    count_tried(wk, DELTA)
    bound = clear_of_mates(node.eval + pruning.delta_margin + _material_gain(pos, move))
    if bound > node.alpha or saves_draw(tb, pos, move, max(bound, node.best)):
        return False
    count_pruned(wk, DELTA)
    if bound > node.best:
        node.best = bound
    return True
