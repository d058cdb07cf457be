"""Every hook replaced: one file, compiled once, for most tests of plug-ins.

A rule does what word 0 says, with the number in word 1; zeros, with which a search begins, forward to the package. A
policy does what `--split-depth` says. Word 2 counts how often `may_open` is asked.
"""

from psearch.own_policy import (
    CUT_NODE,
    child_type,
    claim_depth,
    may_open,
    null_child_type,
    open_priority,
    refined_type,
    skips_depth,
    splits_nothing,
)
from psearch.own_rule import (
    Context,
    atomic_add,
    atomic_load,
    count_tried,
    evaluation_of,
    extension_of,
    header_of,
    i64,
    kernel,
    prune_node,
    prunes_move,
    reduction_of,
    replaces,
    word,
)
from psearch.scheduler.policies import garms_child_type, garms_priority
from psearch.scheduler.policy import leaves_out

WORDS = 3
NO_MOVE_IS_GOOD, WORTH, WORTH_MORE = 1, 2, 3
"""In word 0: every move is left out; a position is worth word 1; or so much more than the package says."""
YOUNG_BROTHERS, ALONE = 2, 3
"""Split depths that select the policies `ybw` and `lazy`, which are written here once more."""


@kernel(i64(Context))
def rule(ctx):
    return atomic_load(word(ctx, 0))


@kernel(i64(Context))
def policy(ctx):
    return i64(header_of(ctx).options.split_depth)


@replaces(evaluation_of)
def evaluation(ctx, wk, pos):
    if rule(ctx) == WORTH:
        return atomic_load(word(ctx, 1))
    return evaluation_of(ctx, wk, pos) + (atomic_load(word(ctx, 1)) if rule(ctx) == WORTH_MORE else 0)


@replaces(prune_node)
def node_pruning(ctx, wk, pos, node, came_by):
    return prune_node(ctx, wk, pos, node, came_by)


@replaces(prunes_move)
def move_pruning(ctx, wk, pos, node, move):
    if rule(ctx) == NO_MOVE_IS_GOOD:
        count_tried(wk)
        return True
    return prunes_move(ctx, wk, pos, node, move)


@replaces(extension_of)
def extension(ctx, wk, pos, node, visit, gives, within):
    return extension_of(ctx, wk, pos, node, visit, gives, within)


@replaces(reduction_of)
def reduction(ctx, wk, pos, node, visit, gives):
    return reduction_of(ctx, wk, pos, node, visit, gives)


@replaces(may_open)
def opening(ctx, node, ply):
    atomic_add(word(ctx, 2), 1)
    return node.moves_done >= 1 if policy(ctx) == YOUNG_BROTHERS else may_open(ctx, node, ply)


@replaces(open_priority)
def priority(ctx, node):
    return garms_priority(node) if policy(ctx) == YOUNG_BROTHERS else open_priority(ctx, node)


@replaces(child_type)
def child(ctx, node, index, picked, stage):
    if policy(ctx) == YOUNG_BROTHERS:
        return garms_child_type(i64(node.split_type), index, stage)
    return child_type(ctx, node, index, picked, stage)


@replaces(null_child_type)
def after_null(ctx, node):
    return CUT_NODE if policy(ctx) == YOUNG_BROTHERS else null_child_type(ctx, node)


@replaces(refined_type)
def refined(ctx, node):
    return i64(node.split_type) if policy(ctx) == YOUNG_BROTHERS else refined_type(ctx, node)


@replaces(splits_nothing)
def splitting(ctx):
    return True if policy(ctx) == ALONE else splits_nothing(ctx)


@replaces(skips_depth)
def skipping(ctx, root, depth):
    return leaves_out(root, depth) if policy(ctx) == ALONE else skips_depth(ctx, root, depth)


@replaces(claim_depth)
def claiming(ctx):
    return claim_depth(ctx)
