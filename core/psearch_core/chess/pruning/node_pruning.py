"""Selective search at a node: decisions when it is entered, before the first move.

`records/pruning_record.py` explains switches, margins and modes. Values that a decision returns are fail-soft bounds.

Sources: futility, extended futility, limited razoring and adaptive null move are from Heinz (1998, 1999, 2000), deep
futility is from H. G. Muller; the others are common to today's engines.
"""

import numpy as np

from psearch_core.arithmetic import clear_of_mates, is_mate_bound
from psearch_core.chess.board.checks import mate_in_one
from psearch_core.chess.board.movegen import king_can_step
from psearch_core.chess.board.position import has_pieces, king_square
from psearch_core.chess.evaluation.endgames import SCALING_PHASE, known_scale
from psearch_core.chess.evaluation.evaluate import material
from psearch_core.chess.ordering.see import see_value
from psearch_core.chess.pruning.counters import count_pruned, count_tried
from psearch_core.constants import (
    ALL_NODE,
    BOUND_LOWER,
    BOUND_NONE,
    DRAW,
    KING,
    NO_MOVE,
    NO_SCORE,
    NULL_MOVE,
    PAWN,
    PV_NODE,
    QUEEN,
    U0,
    U1,
)
from psearch_core.techniques import (
    DEEP_FUTILITY,
    LIMITED_RAZORING,
    MATE_IN_ONE,
    NULL_MOVE_PRUNING,
    RAZORING,
    REVERSE_FUTILITY,
)
from psearch_core.toolchain.intrinsics import lowest_bit, popcount
from psearch_core.toolchain.jit import kernel
from psearch_core.views import Node, Position, PruningRecord, Tables, Worker, boolean, i64, void

PRUNE_NOTHING, PRUNE_RETURN, PRUNE_NULL, PRUNE_RAZOR = range(4)
PROBCUT_REDUCTION = 3
"""Plies by which a ProbCut search is less deep."""
IID_REDUCTION = 2
"""Plies by which a search for a missing table move is less deep."""
_SINGULAR_TABLE_GAP = 3
"""Plies by which the table's entry may be less deep than the node if its move is tested for being singular."""
_PIECES_FOR_RAZORING = 3
_PIECES_FOR_R3 = 3


@kernel(i64(Position, i64))
def _officers(pos, side):
    """Return the number of a side's pieces other than king and pawns."""
    return popcount(pos.color_bb[side] & ~pos.piece_bb[PAWN]) - 1


@kernel(boolean(Tables, Position, i64))
def _may_be_drawn(tb, pos, value):
    """Tell whether a value below a draw, derived from material, is unreliable: the other side cannot win by the theory
    of endings, or a bare king is to move, which may reach such an ending."""
    if value >= DRAW or pos.phase > SCALING_PHASE:
        return False
    side = np.int64(pos.side)
    return pos.color_bb[side] & ~pos.piece_bb[KING] == U0 or known_scale(tb, pos, 1 - side) == 0


@kernel(void(Worker, PruningRecord, Tables, Position, Node))
def decide_futility(wk, pruning, tb, pos, node):
    """Make Heinz's decisions at depth 1 to 3: set `futility` to the greatest value of a move that gains nothing.

    Limited razoring makes depth 3 to depth 2, where extended futility then applies.
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
        most = base + pruning.limited_razoring_margin
        if most <= alpha and not _may_be_drawn(tb, pos, most):
            count_pruned(wk, LIMITED_RAZORING)
            node.depth = 2
    margin = NO_SCORE
    if node.depth == 2 and pruning.extended_futility and not node.extended:
        margin = pruning.extended_futility_margin
    elif node.depth == 1 and pruning.futility:
        margin = pruning.futility_margin
    if margin != NO_SCORE and base + margin <= alpha and not _may_be_drawn(tb, pos, base + margin):
        node.futility = clear_of_mates(base + margin)


@kernel(i64(Position, i64))
def _two_most_valuable(pos, side):
    """Return the value of a side's two most valuable pieces or pawns, without the king."""
    left = 2
    value = 0
    for piece in range(QUEEN, PAWN - 1, -1):
        count = min(left, popcount(pos.piece_bb[piece] & pos.color_bb[side]))
        value += count * see_value(piece)
        left -= count
    return value


@kernel(i64(PruningRecord, Position, Node))
def null_reduction(pruning, pos, node):
    """Return R: the null move is searched at depth - R - 1."""
    depth = node.depth
    if pruning.null_adaptive:
        # Heinz 1999: 2 up to depth 6, 3 above 8, and between them 3 if both sides have enough pieces
        if depth <= 6:
            return 2
        if depth > 8:
            return 3
        side = pos.side
        enough = min(_officers(pos, side), _officers(pos, 1 - side)) >= _PIECES_FOR_R3
        return 3 if enough else 2
    # at least R at beta: deep futility asks for R far below beta
    surplus = max(0, min((node.estimate - node.beta) // pruning.null_eval_divisor, 3))
    return pruning.null_base + depth // pruning.null_depth_divisor + surplus


@kernel(boolean(Tables, Position))
def _is_netted(tb, pos):
    """Tell whether the king of the side to move has at most one free square, and two or more around it are attacked.

    The evaluation of material is unreliable in such a mating net, which takes two pieces (docs/decisions/trials.md).
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


@kernel(boolean(Worker, PruningRecord, Tables, Position, i64))
def _mates(wk, pruning, tb, pos, side):
    """Tell whether a side could mate in one, so that material does not count (docs/decisions/trials.md)."""
    if not pruning.mate_in_one:
        return False
    count_tried(wk, MATE_IN_ONE)
    if mate_in_one(tb, pos, side) == NO_MOVE:
        return False
    count_pruned(wk, MATE_IN_ONE)
    return True


@kernel(i64(Worker, PruningRecord, Tables, Position, Node, i64))
def prune_node(wk, pruning, tb, pos, node, came_by):
    """Decide before the first move of a node with a null window, not the root; PRUNE_RETURN leaves its value in
    `wk.value`. came_by: the move that led here."""
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
        if estimate + pruning.razoring_margin * depth <= alpha and not (
            _may_be_drawn(tb, pos, estimate) or _mates(wk, pruning, tb, pos, pos.side)
        ):
            return PRUNE_RAZOR
    is_threat_known = False
    if pruning.reverse_futility and depth <= pruning.reverse_futility_depth:
        count_tried(wk, REVERSE_FUTILITY)
        surplus = estimate - pruning.reverse_futility_margin * (depth - node.improving) - beta
        if surplus >= 0 and not is_mate_bound(estimate):
            if depth >= pruning.mate_in_one_depth:
                if _mates(wk, pruning, tb, pos, 1 - pos.side):
                    return PRUNE_NOTHING
                is_threat_known = True
            careful = pruning.reverse_futility_net != 0 and depth >= pruning.reverse_futility_net_depth
            if not (careful and _is_netted(tb, pos)):
                count_pruned(wk, REVERSE_FUTILITY)
                wk.value = clear_of_mates(beta + surplus // 2)
                return PRUNE_RETURN
    if pruning.deep_futility and 1 < depth <= 3 + null_reduction(pruning, pos, node):
        count_tried(wk, DEEP_FUTILITY)
        most = node.eval + _two_most_valuable(pos, 1 - pos.side) + 2 * pruning.deep_futility_margin
        if most <= alpha and not _may_be_drawn(tb, pos, most):
            count_pruned(wk, DEEP_FUTILITY)
            wk.value = clear_of_mates(most)
            return PRUNE_RETURN
    if (
        pruning.null_move
        and depth >= 2
        and estimate >= beta
        and node.futility == NO_SCORE
        and came_by != NULL_MOVE
        and has_pieces(pos, pos.side)
        and (is_threat_known or not _mates(wk, pruning, tb, pos, 1 - pos.side))
    ):
        count_tried(wk, NULL_MOVE_PRUNING)
        return PRUNE_NULL
    return PRUNE_NOTHING


@kernel(boolean(PruningRecord, Position, Node))
def needs_verification(pruning, pos, node):
    """Tell whether to verify a null move that failed high: at high depth, or if zugzwang is likely."""
    if not pruning.null_verify:
        return False
    return node.depth >= pruning.null_verify_depth or _officers(pos, pos.side) <= 1


@kernel(boolean(PruningRecord, Node))
def wants_iid(pruning, node):
    """Tell whether to use internal iterative deepening: at a PV node or an expected CUT node without a table move."""
    if not pruning.iid or node.tt_move != NO_MOVE or node.depth < pruning.iid_depth:
        return False
    return node.kannan_type != ALL_NODE


@kernel(boolean(PruningRecord, Node))
def wants_iir(pruning, node):
    """Tell whether to use internal iterative reduction: like IID, but the node itself is searched a ply less deep."""
    if not pruning.iir or node.tt_move != NO_MOVE or node.depth < pruning.iir_depth:
        return False
    return node.kannan_type != ALL_NODE


@kernel(boolean(PruningRecord, Node))
def wants_probcut(pruning, node):
    """Tell whether to try ProbCut, by which a capture that beats beta by a margin at reduced depth refutes the node."""
    if not pruning.probcut or node.depth < pruning.probcut_depth or node.in_check or node.kannan_type == PV_NODE:
        return False
    bound = node.full_beta + pruning.probcut_margin
    if is_mate_bound(bound) or is_mate_bound(node.full_alpha):
        return False  # avoiding a mate at reduced depth proves nothing at full depth
    unlikely = node.tt_bound != BOUND_NONE and node.tt_depth >= node.depth - PROBCUT_REDUCTION and node.tt_score < bound
    return not unlikely


@kernel(boolean(PruningRecord, Node))
def wants_singular(pruning, node):
    """Tell whether to test by a singular pass that the table's move, which failed high, is the only good one."""
    return (
        pruning.singular != 0
        and node.depth >= pruning.singular_depth
        and node.tt_move != NO_MOVE
        and node.tt_bound >= BOUND_LOWER
        and node.tt_depth >= node.depth - _SINGULAR_TABLE_GAP
        and not is_mate_bound(node.tt_score)
    )
