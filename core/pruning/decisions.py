"""What is left out: every technique of selective search, each with its switch, its margins and its count.

Decisions about a node are taken when it is entered (`prune_node`), decisions about a move when it is handed out, before
it is made (`prunes_move`, under the lock of an open node). Margins and switches are in one record (`pruning_dtype`);
`pruning_modes.py` says which mode uses which. Values that come out of a decision are fail-soft bounds.

Sources: futility, extended futility, limited razoring and adaptive null move, Heinz (1998, 1999, 2000); deep futility,
H. G. Muller; the others are common ground of today's engines.
"""

from __future__ import annotations

from psearch.core.board.bits import move_from, move_kind, move_to
from psearch.core.board.checks import gives_check
from psearch.core.board.movegen import king_can_step
from psearch.core.board.position import code_on, has_pieces, king_square, piece_on
from psearch.core.constants import (
    ALL_NODE,
    BISHOP,
    BOUND_LOWER,
    BOUND_NONE,
    CUT_NODE,
    KIND_EP,
    KIND_PROMOTE,
    KNIGHT,
    MATE_IN_MAX_PLY,
    NO_MOVE,
    NO_SCORE,
    NULL_MOVE,
    PASS_PROBCUT,
    PASS_SINGULAR,
    PAWN,
    QUEEN,
    ROOK,
    SKIP_QUIETS,
    U0,
    U1,
)
from psearch.core.evaluation.evaluate import material
from psearch.core.intrinsics import lowest_bit, popcount
from psearch.core.jit import kernel
from psearch.core.ordering.history import is_quiet, quiet_history
from psearch.core.ordering.movepick import PICK_BAD_CAPTURES, drop_quiets
from psearch.core.ordering.see import SEE_VALUES, captured_value, see_at_least, see_value
from psearch.core.records import REDUCTIONS
from psearch.core.views import Learning, Node, Position, Pruning, Tables, Visit, Worker, boolean, i64, void

# What is counted: `TECHNIQUE_NAMES`, in the same order
(
    FUTILITY,
    EXTENDED_FUTILITY,
    LIMITED_RAZORING,
    DEEP_FUTILITY,
    QUIET_SHORTCUT,
    NULL_MOVE_PRUNING,
    NULL_VERIFY,
    REVERSE_FUTILITY,
    RAZORING,
    PROBCUT,
    IID,
    IIR,
    SINGULAR,
    MULTICUT,
    CHECK_EXTENSION,
    LMR,
    LMP,
    HISTORY_PRUNING,
    MOVE_FUTILITY,
    SEE_QUIETS,
    SEE_CAPTURES,
    SEE_QUIESCENCE,
    DELTA,
    SOUND,
    SOUND_DELTA,
) = range(25)

PRUNE_NOTHING, PRUNE_RETURN, PRUNE_NULL, PRUNE_RAZOR = range(4)
_PIECES_FOR_RAZORING = 3
_PIECES_FOR_R3 = 3


@kernel(void(Worker, i64))
def count_tried(wk, technique):
    wk.pruned[technique, 0] += 1


@kernel(void(Worker, i64))
def count_pruned(wk, technique):
    wk.pruned[technique, 1] += 1


@kernel(boolean(i64))
def is_mate_bound(score):
    return score >= MATE_IN_MAX_PLY or score <= -MATE_IN_MAX_PLY


@kernel(i64(Position, i64))
def _officers(pos, side):
    """Pieces of a side other than king and pawns."""
    return popcount(pos.color_bb[side] & ~pos.piece_bb[PAWN]) - 1


# -- decisions about a node --------------------------------------------------------------------------------------------


@kernel(void(Worker, Pruning, Position, Node))
def decide_futility(wk, pruning, pos, node):
    """Heinz's decisions at the last three plies: `futility` becomes what a move without gain can be worth at most.

    Limited razoring (depth 3) takes a ply off; then depth 2 counts as for extended futility.
    """
    node.futility = NO_SCORE
    alpha = node.alpha
    if node.in_check or node.depth > 3 or is_mate_bound(alpha) or is_mate_bound(node.beta):
        return
    base = material(pos) if pruning.futility_by_material else node.eval
    if (
        node.depth == 3
        and pruning.limited_razoring
        and not node.extended
        and _officers(pos, 1 - pos.side) > _PIECES_FOR_RAZORING
    ):
        count_tried(wk, LIMITED_RAZORING)
        if base + pruning.limited_razoring_margin <= alpha:
            count_pruned(wk, LIMITED_RAZORING)
            node.depth = 2
    margin = NO_SCORE
    if node.depth == 2 and pruning.extended_futility and not node.extended:
        margin = pruning.extended_futility_margin
    elif node.depth == 1 and pruning.futility:
        margin = pruning.futility_margin
    if margin != NO_SCORE and base + margin <= alpha:
        node.futility = base + margin


@kernel(i64(Position, i64))
def _two_most_valuable(pos, side):
    """Value of a side's two most valuable pieces or pawns, the king aside."""
    left = 2
    value = 0
    for piece in range(QUEEN, PAWN - 1, -1):
        count = min(left, popcount(pos.piece_bb[piece] & pos.color_bb[side]))
        value += count * see_value(piece)
        left -= count
    return value


@kernel(i64(Pruning, Position, Node))
def null_reduction(pruning, pos, node):
    """R: the null move is searched at depth - R - 1."""
    depth = node.depth
    if pruning.null_adaptive:
        # Heinz 1999: 2 up to depth 6, 3 beyond 8, and between 3 while both sides have pieces enough
        if depth <= 6:
            return 2
        if depth > 8:
            return 3
        side = pos.side
        enough = min(_officers(pos, side), _officers(pos, 1 - side)) >= _PIECES_FOR_R3
        return 3 if enough else 2
    # deep futility asks far below beta, where nothing is to be taken off
    surplus = max(0, min((node.estimate - node.beta) // pruning.null_eval_divisor, 3))
    return pruning.null_base + depth // pruning.null_depth_divisor + surplus


@kernel(boolean(Tables, Position))
def _is_netted(tb, pos):
    """Whether the king of the side to move has at most one square to go to, and the enemy takes two or more from him.

    A mating net: here no material is worth what the evaluation says. It takes two pieces; a king and pawns only press.
    """
    side = pos.side
    if _officers(pos, 1 - side) < 2:
        return False
    king = king_square(pos, side)
    around_bb = tb.king[king] & ~pos.color_bb[side]
    free = 0
    taken = 0
    while around_bb != U0:
        square = lowest_bit(around_bb)
        around_bb &= around_bb - U1
        if not king_can_step(tb, pos, king, square):
            taken += 1
        elif free == 1:
            return False
        else:
            free = 1
    return taken >= 2


@kernel(i64(Worker, Pruning, Tables, Position, Node, i64))
def prune_node(wk, pruning, tb, pos, node, came_by):
    """Before the first move, at a node with a null window below the root: PRUNE_RETURN leaves a value in `wk.value`.

    came_by: the move that led here.
    """
    if node.in_check:
        return PRUNE_NOTHING
    depth = node.depth
    alpha = node.alpha
    beta = node.beta
    estimate = node.estimate
    if is_mate_bound(beta) or is_mate_bound(alpha):
        return PRUNE_NOTHING
    if pruning.razoring and depth <= pruning.razoring_depth:
        count_tried(wk, RAZORING)
        if estimate + pruning.razoring_margin * depth <= alpha:
            return PRUNE_RAZOR
    if pruning.reverse_futility and depth <= pruning.reverse_futility_depth:
        count_tried(wk, REVERSE_FUTILITY)
        surplus = estimate - pruning.reverse_futility_margin * (depth - node.improving) - beta
        careful = pruning.reverse_futility_net != 0 and depth >= pruning.reverse_futility_net_depth
        if surplus >= 0 and not is_mate_bound(estimate) and not (careful and _is_netted(tb, pos)):
            count_pruned(wk, REVERSE_FUTILITY)
            wk.value = beta + surplus // 2
            return PRUNE_RETURN
    if pruning.deep_futility and 1 < depth <= 3 + null_reduction(pruning, pos, node):
        count_tried(wk, DEEP_FUTILITY)
        most = node.eval + _two_most_valuable(pos, 1 - pos.side) + 2 * pruning.deep_futility_margin
        if most <= alpha:
            count_pruned(wk, DEEP_FUTILITY)
            wk.value = most
            return PRUNE_RETURN
    if (
        pruning.null_move
        and depth >= 2
        and estimate >= beta
        and node.futility == NO_SCORE
        and came_by != NULL_MOVE
        and has_pieces(pos, pos.side)
    ):
        count_tried(wk, NULL_MOVE_PRUNING)
        return PRUNE_NULL
    return PRUNE_NOTHING


@kernel(boolean(Pruning, Position, Node))
def needs_verification(pruning, pos, node):
    """Whether a null move that failed high is no proof: zugzwang is likely with one piece left, and costly far up."""
    if not pruning.null_verify:
        return False
    return node.depth >= pruning.null_verify_depth or _officers(pos, pos.side) <= 1


@kernel(boolean(Pruning, Node))
def wants_iid(pruning, node):
    """Internal iterative deepening: no table move at a PV node or an expected CUT node."""
    if not pruning.iid or node.tt_move != NO_MOVE or node.depth < pruning.iid_depth:
        return False
    return node.expected != ALL_NODE


@kernel(boolean(Pruning, Node))
def wants_iir(pruning, node):
    """Internal iterative reduction: as IID, but the node is searched a ply less deep instead."""
    if not pruning.iir or node.tt_move != NO_MOVE or node.depth < pruning.iir_depth:
        return False
    return node.expected != ALL_NODE


@kernel(boolean(Pruning, Node))
def wants_probcut(pruning, node):
    """A capture that beats beta by a margin at reduced depth will beat it at full depth."""
    if (
        not pruning.probcut
        or node.depth < pruning.probcut_depth
        or node.in_check
        or node.full_beta - node.full_alpha > 1
    ):
        return False
    bound = node.full_beta + pruning.probcut_margin
    if is_mate_bound(bound) or is_mate_bound(node.full_alpha):
        return False  # not being mated at reduced depth is no reason to believe it
    unlikely = node.tt_kind != BOUND_NONE and node.tt_depth >= node.depth - 3 and node.tt_score < bound
    return not unlikely


@kernel(boolean(Pruning, Node))
def wants_singular(pruning, node):
    """The table says that one move fails high, at nearly this depth: is it the only one?"""
    return (
        pruning.singular != 0
        and node.depth >= pruning.singular_depth
        and node.tt_move != NO_MOVE
        and node.tt_kind >= BOUND_LOWER
        and node.tt_depth >= node.depth - 3
        and not is_mate_bound(node.tt_score)
    )


# -- decisions about a move --------------------------------------------------------------------------------------------


@kernel(i64(Position, i64))
def _material_gain(pos, move):
    """What a move takes, and what a pawn becomes."""
    gain = captured_value(pos, move)
    kind = move_kind(move)
    if kind >= KIND_PROMOTE:
        gain += see_value(kind - KIND_PROMOTE + KNIGHT) - SEE_VALUES[PAWN]
    return gain


@kernel(boolean(Pruning, Position, i64))
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


@kernel(boolean(Worker, Pruning, Tables, Position, Node, i64))
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
    if bound > node.best:
        node.best = bound
    count_pruned(wk, technique)
    return True


@kernel(i64(Pruning, i64, i64))
def base_reduction(pruning, depth, index):
    """Late move reduction by depth and move number, in 1/256 ply."""
    return pruning.reductions[min(depth, REDUCTIONS - 1), min(index, REDUCTIONS - 1)]


@kernel(void(Worker, Tables, Position, Node, i64))
def _prune_quiets(wk, tb, pos, node, technique):
    """This quiet move and all after it are pruned, but for those that give check."""
    node.skip = SKIP_QUIETS
    dropped = drop_quiets(tb, pos, node)
    wk.pruned[technique, 0] += dropped
    wk.pruned[technique, 1] += dropped + 1


@kernel(boolean(Worker, Pruning, Learning, Tables, Position, Node, i64))
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
    reduced = max(0, depth - 1 - (base_reduction(pruning, depth, index) >> 8))
    if pruning.move_futility and reduced <= pruning.move_futility_depth:
        count_tried(wk, MOVE_FUTILITY)
        bound = node.eval + pruning.move_futility_base + pruning.move_futility_margin * reduced
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


@kernel(boolean(Worker, Pruning, Learning, Tables, Position, Node, i64))
def prunes_move(wk, pruning, learning, tb, pos, node, move):
    """Whether a move that the picker gives is left out. Under the lock if the node is open."""
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
        if not see_at_least(tb, pos, move, -pruning.see_captures_margin * node.depth):
            count_pruned(wk, SEE_CAPTURES)
            return True
    return False


@kernel(boolean(Worker, Pruning, Tables, Position, Node, i64))
def prunes_capture(wk, pruning, tb, pos, node, move):
    """Delta pruning in quiescence: what a capture wins, and a margin, do not reach alpha."""
    if not pruning.delta or is_mate_bound(node.alpha):
        return False
    count_tried(wk, DELTA)
    bound = node.eval + pruning.delta_margin + _material_gain(pos, move)
    if bound > node.alpha:
        return False
    count_pruned(wk, DELTA)
    if bound > node.best:
        node.best = bound
    return True


# -- reductions and extensions -----------------------------------------------------------------------------------------


@kernel(i64(Worker, Pruning, Tables, Position, Node, Visit, i64, i64))
def extension_of(wk, pruning, tb, pos, node, visit, in_check, within):
    """Plies more for a move. in_check: 1 if it gives check; within: 1 while the line is not too long already."""
    move = visit.move
    if node.extension != 0 and move == node.tt_move and node.pass_kind > PASS_SINGULAR:
        return node.extension if within or node.extension < 0 else 0
    if in_check and pruning.check_extension and within:
        count_tried(wk, CHECK_EXTENSION)
        if pruning.check_extension > 1 or see_at_least(tb, pos, move, 0):
            count_pruned(wk, CHECK_EXTENSION)
            return 1
    return 0


@kernel(i64(Worker, Pruning, Learning, Position, Node, Visit, i64))
def reduction_of(wk, pruning, learning, pos, node, visit, gives):
    """Late move reduction in plies, 0 for none. gives: 1 if the move gives check."""
    if not pruning.lmr or node.depth < 3 or node.in_check:
        return 0
    index = visit.index
    pv_node = node.beta - node.alpha > 1
    if index < (3 if pv_node else 2):
        return 0
    move = visit.move
    reduction = base_reduction(pruning, node.depth, index)
    if is_quiet(pos, move):
        reduction -= quiet_history(learning, pos, node, move) * 256 // pruning.lmr_history
        if move == node.killer_1 or move == node.killer_2:
            reduction -= 256
        if node.expected == CUT_NODE:
            reduction += 256
    else:
        if visit.picked < PICK_BAD_CAPTURES:
            return 0
        reduction -= 256
    if pv_node:
        reduction -= 256
    if not node.improving:
        reduction += 128
    if gives:
        reduction -= 256
    return max(0, reduction >> 8)
