"""Hooks for selective search and evaluation, which a user's file may replace.

Each calls the kernel of the package, which costs nothing, since LLVM inlines it. `psearch.own_rule` and
docs/guides/own-rule.md say what a user's file may read and write.
"""

from psearch_core.chess.evaluation.evaluate import evaluate, evaluate_by_network
from psearch_core.chess.pruning.move_pruning import expected_cutoffs
from psearch_core.chess.pruning.move_pruning import extension_of as package_extension_of
from psearch_core.chess.pruning.move_pruning import prunes_move as package_prunes_move
from psearch_core.chess.pruning.move_pruning import reduction_of as package_reduction_of
from psearch_core.chess.pruning.node_pruning import PRUNE_NOTHING, PRUNE_RAZOR
from psearch_core.chess.pruning.node_pruning import prune_node as package_prune_node
from psearch_core.records import MAX_PLY
from psearch_core.toolchain.jit import allow_writing, hook, limit_answers
from psearch_core.views import Context, Node, Position, Visit, Worker, boolean, header_of, i64, stack_of, tables_of


@hook(i64(Context, Worker, Position))
def evaluation_of(ctx, wk, pos):
    """Return the evaluation of the position at the worker's ply, in centipawns for the side to move; the options select
    network or handcrafted. Called for positions that are not in check and not in the table."""
    if header_of(ctx).options.pruning.network:
        return evaluate_by_network(tables_of(ctx), wk.evaluation, pos, wk.ply)
    return evaluate(tables_of(ctx), wk.evaluation, pos)


@hook(i64(Context, Worker, Position, Node, i64))
def prune_node(ctx, wk, pos, node, came_by):
    """Decide before the first move of a node with a null window, not the root: `PRUNE_NOTHING`, `PRUNE_RETURN` (the
    value is in `wk.value`), `PRUNE_NULL` (try a null move) or `PRUNE_RAZOR` (search only captures). came_by: the move
    that led here. No other worker can see the node yet."""
    return package_prune_node(wk, header_of(ctx).options.pruning, tables_of(ctx), pos, node, came_by)


@hook(boolean(Context, Worker, Position, Node, i64))
def prunes_move(ctx, wk, pos, node, move):
    """Tell whether a move of the picker is pruned. Called under the lock if the node is open.

    Has no effect at the root, nor before the node has a value that is no mate against the side to move.
    """
    hd = header_of(ctx)
    return package_prunes_move(wk, hd.options.pruning, hd.learning, tables_of(ctx), pos, node, move)


@hook(i64(Context, Worker, Position, Node, Visit, boolean, boolean))
def extension_of(ctx, wk, pos, node, visit, gives, within):
    """Return the extension of the visit's move in plies, -3 to 2; for 0, `reduction_of` is called. gives: it gives
    check; within: the line is not too long yet. Reads the node without its lock."""
    return package_extension_of(wk, header_of(ctx).options.pruning, tables_of(ctx), pos, node, visit, gives, within)


@hook(i64(Context, Worker, Position, Node, Visit, boolean))
def reduction_of(ctx, wk, pos, node, visit, gives):
    """Return the reduction of the visit's move in plies, 0 for none. At least depth 1 is left, and a reduced move that
    beats alpha is searched again at full depth. gives: it gives check. Reads the node without its lock."""
    hd = header_of(ctx)
    pruning = hd.options.pruning
    cutoffs = expected_cutoffs(pruning, stack_of(ctx, wk.stack).cutoffs[wk.ply + 1], visit.under_way)
    return package_reduction_of(cutoffs, pruning, hd.learning, pos, node, visit, gives)


# set in the module of the hooks, so that a user's file cannot import a hook without its limits
limit_answers(0, MAX_PLY, reduction_of)
limit_answers(-3, 2, extension_of)
limit_answers(PRUNE_NOTHING, PRUNE_RAZOR, prune_node)
allow_writing(Worker, "value", prune_node)
allow_writing(Node, "best", prunes_move)
