"""Selective search at a move: decides whether a move of the picker is pruned, and how deep it is searched.

A move is pruned before it is made, at an open node under its lock. `node_pruning.py` names the sources.
"""

from psearch_core.arithmetic import clear_of_mates, is_mate_bound
from psearch_core.chess.board.attacks import move_from, move_kind, move_to
from psearch_core.chess.board.checks import gives_check_at
from psearch_core.chess.board.position import code_on, has_pieces, piece_on
from psearch_core.chess.evaluation.endgames import leaves_no_win
from psearch_core.chess.ordering.history import is_quiet, quiet_history
from psearch_core.chess.ordering.movepick import PICK_BAD_CAPTURES, PICK_CAPTURES, drop_quiets
from psearch_core.chess.ordering.see import SEE_VALUES, captured_value, see_at_least, see_value
from psearch_core.chess.pruning.counters import count_pruned, count_tried
from psearch_core.constants import (
    BISHOP,
    CUT_NODE,
    DRAW,
    KIND_EP,
    KIND_PROMOTE,
    KNIGHT,
    MATE_IN_MAX_PLY,
    NO_MOVE,
    NO_SCORE,
    PASS_MAIN,
    PASS_PROBCUT,
    PASS_SINGULAR,
    PAWN,
    PV_NODE,
    QUEEN,
    ROOK,
    SKIP_QUIETS,
)
from psearch_core.records import PLY, PLY_SHIFT, REDUCTIONS
from psearch_core.techniques import (
    CHECK_EXTENSION,
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
from psearch_core.views import (
    Learning,
    Node,
    Position,
    PruningRecord,
    Tables,
    Visit,
    Worker,
    boolean,
    i64,
    racing_alpha,
    racing_killer_1,
    racing_killer_2,
    racing_tt_move,
    void,
)

_MANY_CUTOFFS = 3


@kernel(i64(PruningRecord, i64, i64))
def base_reduction(pruning, depth, index):
    """Return the late move reduction by depth and move number, in 1/PLY."""
    return pruning.reductions[min(depth, REDUCTIONS - 1), min(index, REDUCTIONS - 1)]


@kernel(i64(Worker, PruningRecord, Tables, Position, Node, Visit, boolean, boolean))
def extension_of(wk, pruning, tb, pos, node, visit, gives, within):
    """Return the extension of a move in plies. gives: it gives check; within: the line is not too long yet."""
    move = visit.move
    if node.extension != 0 and move == racing_tt_move(node) and node.pass_kind == PASS_MAIN:
        return node.extension if within or node.extension < 0 else 0
    if gives and pruning.check_extension and within and node.depth <= pruning.check_extension_depth:
        count_tried(wk, CHECK_EXTENSION)
        is_good = pruning.check_extension > 1 or visit.picked == PICK_CAPTURES
        if is_good or see_at_least(tb, pos, move, 0):
            count_pruned(wk, CHECK_EXTENSION)
            return 1
    return 0


@kernel(i64(PruningRecord, i64, i64))
def expected_cutoffs(pruning, cutoffs, under_way):
    """Return the number of children that a single worker would have seen cut off by now.

    It would have finished the moves that other workers are searching. Only a part of them counts, since many children
    fail high without a move (docs/decisions/004).
    """
    return cutoffs + (under_way * pruning.lmr_under_way + 50) // 100


@kernel(i64(i64, PruningRecord, Learning, Position, Node, Visit, boolean))
def reduction_of(cutoffs, pruning, learning, pos, node, visit, gives):
    """Return the late move reduction in plies, 0 for none.

    cutoffs: number of children of the node and of its siblings that a move has cut off; gives: the move gives check.
    """
    if not pruning.lmr or node.depth < pruning.lmr_depth or node.in_check:
        return 0
    index = visit.index
    alpha = racing_alpha(node)
    # with null windows at the root, nodes on the principal line have them, too, but are searched like PV nodes
    on_first_line = node.kannan_type == PV_NODE and alpha == node.entry_alpha and node.pass_kind != PASS_SINGULAR
    pv_node = node.beta - alpha > 1 or on_first_line
    if index < (3 if pv_node else 2):
        return 0
    move = visit.move
    reduction = base_reduction(pruning, node.depth, index)
    if is_quiet(pos, move):
        reduction -= quiet_history(learning, pos, node, move) * PLY // pruning.lmr_history
        if move == racing_killer_1(node) or move == racing_killer_2(node):
            reduction -= PLY
        if node.kannan_type == CUT_NODE:
            reduction += PLY
    else:
        if visit.picked < PICK_BAD_CAPTURES:
            return 0
        reduction -= PLY
    if pv_node:
        reduction -= PLY
    if not node.improving:
        reduction += PLY // 2
    if gives:
        reduction -= PLY
    table_move = racing_tt_move(node)
    if pruning.lmr_tt_capture and table_move != NO_MOVE and not is_quiet(pos, table_move):
        reduction += pruning.lmr_tt_capture * PLY // 100
    if node.ply > 0 and cutoffs > _MANY_CUTOFFS:  # at the root this would hide quiet mates
        reduction += pruning.lmr_cutoffs * PLY // 100
    return max(0, reduction >> PLY_SHIFT)


@kernel(i64(Position, i64))
def _material_gain(pos, move):
    """Return the material that a move gains by capture and promotion."""
    gain = captured_value(pos, move)
    kind = move_kind(move)
    if kind >= KIND_PROMOTE:
        gain += see_value(kind - KIND_PROMOTE + KNIGHT) - SEE_VALUES[PAWN]
    return gain


@kernel(boolean(PruningRecord, Position, i64))
def _is_exempt(pruning, pos, move):
    """Tell whether a move is exempt from futility, since it changes more than it captures. Ignores checks."""
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
    """Tell whether a capture secures a draw, since the other side cannot win with its remaining pieces, and is thus
    better than a bound from material."""
    return bound < DRAW and leaves_no_win(tb, pos, move)


@kernel(boolean(Worker, PruningRecord, Tables, Position, Node, i64))
def _is_futile(wk, pruning, tb, pos, node, move):
    """Tell whether a move is futile by Heinz's condition, at a node with a `futility`; the bound goes into `best`."""
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
    if pruning.exempt_checks and gives_check_at(tb, pos, node, move):
        return False
    if not quiet and saves_draw(tb, pos, move, max(bound, node.best)):
        return False
    if bound > node.best:
        node.best = bound
    count_pruned(wk, technique)
    return True


@kernel(void(Worker, Tables, Position, Node, i64))
def _prune_quiets(wk, tb, pos, node, technique):
    """Prune this quiet move and all later ones, except those that give check."""
    node.skip = SKIP_QUIETS
    dropped = drop_quiets(tb, pos, node)
    wk.pruned[technique, 0] += dropped
    wk.pruned[technique, 1] += dropped + 1


@kernel(boolean(Worker, PruningRecord, Learning, Tables, Position, Node, i64))
def _prunes_quiet(wk, pruning, learning, tb, pos, node, move):
    """Tell whether a quiet move is pruned: by late move pruning, move futility, history or static exchange."""
    depth = node.depth
    index = node.moves_done
    if node.in_check or gives_check_at(tb, pos, node, move):
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
    """Tell whether a move of the picker is pruned. Called under the lock if the node is open."""
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
        # the picker has found that a capture of its first stage loses nothing
        margin = pruning.see_captures_margin * node.depth
        loses = node.stage != PICK_CAPTURES and not see_at_least(tb, pos, move, -margin)
        if loses and not saves_draw(tb, pos, move, node.best):
            count_pruned(wk, SEE_CAPTURES)
            return True
    return False


@kernel(boolean(Worker, PruningRecord, Tables, Position, Node, i64))
def prunes_capture(wk, pruning, tb, pos, node, move):
    """Tell whether delta pruning skips a capture in quiescence, since its gain plus a margin does not reach alpha."""
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
