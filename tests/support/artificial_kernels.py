"""What happens inside a node of an artificial tree: these kernels replace those of chess below the scheduler's `step`.

Each has the name, the signature and the duties of the kernel that it replaces; the list is in `artificial_tree.py`,
which says what such a tree is like. Nothing here looks at a board: in the memory of a position lies a `tree_dtype`.
"""

from __future__ import annotations

import numba
import numpy as np
from artificial_tree import tree_dtype

from psearch.core.board.zobrist import splitmix64
from psearch.core.constants import (
    BOUND_NONE,
    DO_CHILD,
    DO_MOVES,
    DO_NULL,
    DO_QUIESCENCE,
    DO_RETURN,
    INFINITE,
    NO_MOVE,
    NO_SCORE,
    NULL_MOVE,
    PHASE_MAIN,
    STATE_CHILD,
    STATE_QCHILD,
    U0,
    VISIT_NULL,
)
from psearch.core.intrinsics import address, copy_record, view
from psearch.core.jit import kernel
from psearch.core.ordering.movepick import (
    PICK_BAD_CAPTURES_START,
    PICK_CAPTURES,
    PICK_LIST,
    PICK_QUIETS,
    begin_picking,
    begin_root_picking,
)
from psearch.core.records import FRAME_SIZE, STACK_SIZE
from psearch.core.search.children import set_child
from psearch.core.search.table_node import probe_counted
from psearch.core.search.tt import cuts, entry_bound, entry_move, entry_score
from psearch.core.views import (
    Context,
    Learning,
    Node,
    Position,
    Pruning,
    Tables,
    Worker,
    boolean,
    frame_at,
    header_at,
    i64,
    stack_at,
    void,
)
from psearch.studies.uniform_tree import child_key, child_value

Tree = numba.from_dtype(tree_dtype)
tree_at = view(Tree)

FIRST_QUIET = 2
"""Moves before it count as captures: for the rules that expect something else of children of quiet moves."""
GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@kernel(i64(Context, Worker, Tree))
def exact_value(ctx, wk, tree):
    """What the node at the worker's ply is worth in the present iteration."""
    if tree.swing == 0:
        return np.int64(tree.value)
    depth = stack_at(ctx.stacks + wk.stack * STACK_SIZE).root_depth
    swing = np.int64(splitmix64(np.uint64(depth) * GOLDEN) % np.uint64(2 * tree.swing + 1)) - tree.swing
    return tree.value + (swing if wk.ply % 2 == 0 else -swing)


@kernel(i64(Tree))
def breadth_of(tree):
    return tree.breadth - np.int64(tree.key % np.uint64(tree.spread + 1))


@kernel(i64(Tree, i64))
def child_index(tree, move):
    """Which child a move leads to; child 0 is the best."""
    breadth = breadth_of(tree)
    shift = np.int64((tree.key >> np.uint64(32)) % np.uint64(breadth)) if tree.disorder else 0
    return (move - 1 + shift) % breadth


@kernel(i64(Context, Worker, i64))
def enter(ctx, wk, frame):
    fr = frame_at(frame)
    node = fr.node
    tree = tree_at(address(fr.position))
    ply = wk.ply
    node.pv_length = 0
    node.in_check = 0
    node.entry_alpha = node.alpha
    node.best = -INFINITE
    node.best_move = NO_MOVE
    node.eval = NO_SCORE
    node.tt_move = NO_MOVE
    node.tt_bound = BOUND_NONE
    node.tt_kind = BOUND_NONE
    node.ply = ply
    node.phase = PHASE_MAIN
    if ply > wk.seldepth:
        wk.seldepth = ply
    if node.depth <= 0:
        return DO_QUIESCENCE
    alpha, beta = np.int64(node.alpha), np.int64(node.beta)
    data = probe_counted(ctx, wk, fr.position)
    if data != U0:
        node.tt_move = entry_move(data)
        node.tt_bound = entry_bound(data)
        node.tt_kind = node.tt_bound
        if beta - alpha == 1 and cuts(data, np.int64(node.depth), alpha, beta, ply):
            wk.value = entry_score(data, ply)
            return DO_RETURN
    path = stack_at(ctx.stacks + wk.stack * STACK_SIZE).path
    may_pass = tree.null and ply > 0 and beta - alpha == 1 and node.depth >= 2 and path[ply].move != NULL_MOVE
    return DO_NULL if may_pass and exact_value(ctx, wk, tree) >= beta else DO_MOVES


@kernel(void(Context, Worker, i64, Node, i64, i64))
def push_null(ctx, wk, frame, node, expected_type, expected):
    """To pass is worth as much as the node, or less."""
    fr = frame_at(frame)
    child = frame_at(frame + FRAME_SIZE)
    fr.visit.move = NULL_MOVE
    fr.visit.stage = VISIT_NULL
    fr.visit.resume = STATE_CHILD
    copy_record(child.position, fr.position)
    child.node.extended = 0
    tree = tree_at(address(child.position))
    tree.key = child_key(tree.key, np.int64(tree.breadth))
    tree.value = child_value(np.int64(tree.value), tree.key, np.int64(tree.breadth))
    beta = np.int64(node.beta)
    set_child(ctx, wk, frame, node, -beta, 1 - beta, node.depth - 2, expected_type, expected)


@kernel(i64(Context, Worker, i64))
def after_null(ctx, wk, frame):
    beta = np.int64(frame_at(frame).node.beta)
    if wk.value < beta:
        begin_moves(ctx, wk, frame)
        return DO_MOVES
    wk.value = beta
    return DO_RETURN


@kernel(void(Context, Worker, i64))
def begin_moves(ctx, wk, frame):
    fr = frame_at(frame)
    node = fr.node
    if wk.ply == 0:
        begin_root_picking(stack_at(ctx.stacks + wk.stack * STACK_SIZE), header_at(ctx.header), node)
        return
    begin_picking(node, PICK_CAPTURES)
    count = breadth_of(tree_at(address(fr.position)))
    first = max(np.int64(node.tt_move), 1)
    node.moves[0] = first
    for i in range(1, count):
        node.moves[i] = i if i < first else i + 1
    node.end = count


@kernel(i64(Tables, Learning, Position, Node))
def pick_move(tb, learning, pos, node):
    if node.cursor == node.end:
        node.stage = PICK_BAD_CAPTURES_START
        return NO_MOVE
    if node.stage != PICK_LIST:
        node.stage = PICK_CAPTURES if node.cursor < FIRST_QUIET else PICK_QUIETS
    move = np.int64(node.moves[node.cursor])
    node.cursor += 1
    return move


@kernel(boolean(Worker, Pruning, Learning, Tables, Position, Node, i64))
def prunes_move(wk, pruning, learning, tb, pos, node, move):
    """Every fourth of the moves that do not reach alpha. What a node is worth is known, so nothing is lost."""
    tree = tree_at(address(pos))
    if not tree.prune or node.ply == 0:
        return False
    index = child_index(tree, move)
    key = child_key(tree.key, index)
    bound = -child_value(np.int64(tree.value), key, index)
    if bound > node.alpha or key >> np.uint64(62) != U0:
        return False
    node.best = max(np.int64(node.best), bound)
    return True


@kernel(void(Context, i64, i64))
def make_child(ctx, frame, move):
    fr = frame_at(frame)
    child = frame_at(frame + FRAME_SIZE)
    copy_record(child.position, fr.position)
    tree = tree_at(address(child.position))
    index = child_index(tree, move)
    tree.key = child_key(tree.key, index)
    tree.value = child_value(np.int64(tree.value), tree.key, index)


@kernel(i64(Context, Worker, i64, Node))
def child_depth(ctx, wk, frame, node):
    """Later moves are reduced. A node is worth the same at every depth, so the reduced search says the same."""
    fr = frame_at(frame)
    frame_at(frame + FRAME_SIZE).node.extended = 0
    depth = np.int64(node.depth) - 1
    fr.visit.new_depth = depth
    reduced = tree_at(address(fr.position)).reduce and fr.visit.index >= FIRST_QUIET and depth >= 2
    return depth - 1 if reduced else depth


@kernel(void(Context, Worker, i64, Node))
def learn(ctx, wk, frame, node):
    return


@kernel(i64(Context, Worker, i64))
def enter_quiescence(ctx, wk, frame):
    """The node's value, or at every fourth node one more move, which has no alternative."""
    fr = frame_at(frame)
    tree = tree_at(address(fr.position))
    wk.qnodes += 1
    if tree.noise and tree.key >> np.uint64(62) == U0:
        begin_picking(fr.node, PICK_LIST)
        fr.node.end = 1
        return DO_MOVES
    wk.value = exact_value(ctx, wk, tree)
    return DO_RETURN


@kernel(i64(Context, Worker, i64))
def next_quiescence(ctx, wk, frame):
    fr = frame_at(frame)
    node = fr.node
    if node.cursor == node.end:
        wk.value = np.int64(node.best)
        return DO_RETURN
    node.cursor += 1
    fr.visit.move = 1
    fr.visit.resume = STATE_QCHILD
    child = frame_at(frame + FRAME_SIZE)
    copy_record(child.position, fr.position)
    tree = tree_at(address(child.position))
    tree.key = child_key(tree.key, 0)
    tree.value = -np.int64(tree.value)
    alpha, beta = np.int64(node.alpha), np.int64(node.beta)
    set_child(ctx, wk, frame, node, -beta, -alpha, 0, np.int64(node.type), np.int64(node.expected))
    return DO_CHILD


@kernel(i64(Context, Worker, i64, i64))
def after_quiescence(ctx, wk, frame, value):
    node = frame_at(frame).node
    node.best = value
    if value >= node.beta:
        wk.value = value
        return DO_RETURN
    return DO_MOVES
