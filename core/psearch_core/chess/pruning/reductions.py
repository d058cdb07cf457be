"""How deep a move is searched: extensions, and the reduction of late moves."""

from __future__ import annotations

from psearch_core.chess.ordering.history import is_quiet, quiet_history
from psearch_core.chess.ordering.movepick import PICK_BAD_CAPTURES
from psearch_core.chess.ordering.see import see_at_least
from psearch_core.chess.pruning.counters import count_pruned, count_tried
from psearch_core.constants import CUT_NODE, NO_MOVE, PASS_MAIN, PASS_SINGULAR, PV_NODE
from psearch_core.records import PLY, PLY_SHIFT, REDUCTIONS
from psearch_core.techniques import CHECK_EXTENSION
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
)

_MANY_CUTOFFS = 3


@kernel(i64(PruningRecord, i64, i64))
def base_reduction(pruning, depth, index):
    """Return late move reduction by depth and move number, in 1/PLY."""
    return pruning.reductions[min(depth, REDUCTIONS - 1), min(index, REDUCTIONS - 1)]


@kernel(i64(Worker, PruningRecord, Tables, Position, Node, Visit, boolean, boolean))
def extension_of(wk, pruning, tb, pos, node, visit, gives, within):
    """Return plies more for a move. gives: it gives check; within: the line is not too long already."""
    move = visit.move
    if node.extension != 0 and move == racing_tt_move(node) and node.pass_kind == PASS_MAIN:
        return node.extension if within or node.extension < 0 else 0
    if gives and pruning.check_extension and within:
        count_tried(wk, CHECK_EXTENSION)
        if pruning.check_extension > 1 or see_at_least(tb, pos, move, 0):
            count_pruned(wk, CHECK_EXTENSION)
            return 1
    return 0


@kernel(i64(PruningRecord, i64, i64))
def expected_cutoffs(pruning, cutoffs, under_way):
    """Return children that one worker would have seen cut off by now: it would be through with the moves under way
    elsewhere.

    A part of them counts, for many a child fails high without a move (docs/decisions/025).
    """
    return cutoffs + (under_way * pruning.lmr_under_way + 50) // 100


@kernel(i64(i64, PruningRecord, Learning, Position, Node, Visit, boolean))
def reduction_of(cutoffs, pruning, learning, pos, node, visit, gives):
    """Return late move reduction in plies, 0 for none.

    cutoffs: how many children of the node, and of its siblings, a move has cut off; gives: the move gives check.
    """
    if not pruning.lmr or node.depth < pruning.lmr_depth or node.in_check:
        return 0
    index = visit.index
    alpha = racing_alpha(node)
    # with null windows at the root the line of first moves has them, too, and is searched as PV nodes are
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
    if node.ply > 0 and cutoffs > _MANY_CUTOFFS:  # at the root it hides quiet mates
        reduction += pruning.lmr_cutoffs * PLY // 100
    return max(0, reduction >> PLY_SHIFT)
