"""The inside of a node of an artificial tree: these kernels stand in for those of `psearch_core.game`.

Each has the name, the signature and the duties of the kernel that it replaces; the list is in `artificial_tree.py`,
which says what such a tree is like. Nothing here looks at a board: in the memory of a position lies a `tree_dtype`.
"""

from __future__ import annotations

import numba
import numpy as np
from artificial_tree import tree_dtype

from psearch.lab.studies.study_kernels import child_key, child_value
from psearch_core.arithmetic import SPLITMIX_STEP, splitmix64
from psearch_core.chess.ordering.movepick import (
    PICK_BAD_CAPTURES_START,
    PICK_CAPTURES,
    PICK_LIST,
    PICK_QUIETS,
    begin_picking,
    begin_root_picking,
)
from psearch_core.chess.search.children import set_child
from psearch_core.chess.search.enter_node import begin_node
from psearch_core.chess.search.next_move import put_back, take_deferred
from psearch_core.chess.search.tt import cuts, entry_bound, entry_move, entry_score, probe_table
from psearch_core.constants import (
    DO_CHILD,
    DO_MOVES,
    DO_NULL,
    DO_QUIESCENCE,
    DO_RETURN,
    NO_MOVE,
    NO_SCORE,
    NULL_MOVE,
    STATE_CHILD,
    STATE_QCHILD,
    U0,
    VISIT_NULL,
)
from psearch_core.toolchain.intrinsics import address, copy_record, view
from psearch_core.toolchain.jit import kernel
from psearch_core.views import (
    Context,
    Frame,
    Node,
    Position,
    Tables,
    Worker,
    above,
    boolean,
    header_of,
    i64,
    stack_of,
    void,
)

Tree = numba.from_dtype(tree_dtype)
tree_at = view(Tree)

FIRST_QUIET = 2
"""Moves before it count as captures: for the rules that expect something else of children of quiet moves."""


@kernel(i64(Context, Worker, Tree))
def exact_value(ctx, wk, tree):
    """Return the value of the node at the worker's ply in the present iteration."""
    if tree.swing == 0:
        return tree.value
    depth = stack_of(ctx, wk.stack).root_depth
    swing = np.int64(splitmix64(np.uint64(depth) * SPLITMIX_STEP) % np.uint64(2 * tree.swing + 1)) - tree.swing
    return tree.value + (swing if wk.ply % 2 == 0 else -swing)


@kernel(i64(Tree))
def breadth_of(tree):
    return tree.breadth - np.int64(tree.key % np.uint64(tree.spread + 1))


@kernel(i64(Tree, i64))
def child_index(tree, move):
    """Return the number of the child that a move leads to; child 0 is the best."""
    breadth = breadth_of(tree)
    shift = np.int64((tree.key >> np.uint64(32)) % np.uint64(breadth)) if tree.disorder else 0
    return (move - 1 + shift) % breadth


@kernel(i64(Context, Worker, Frame))
def enter(ctx, wk, frame):
    node = frame.node
    tree = tree_at(address(frame.position))
    ply = wk.ply
    begin_node(node, ply)
    node.pv_length = 0
    node.in_check = 0
    node.eval = NO_SCORE
    if ply > wk.counters.seldepth:
        wk.counters.seldepth = ply
    if node.depth <= 0:
        return DO_QUIESCENCE
    alpha, beta = node.alpha, node.beta
    data = probe_table(ctx, frame.position)
    if data != U0:
        node.tt_move = entry_move(data)
        node.tt_bound = entry_bound(data)
        if ply > 0 and beta - alpha == 1 and cuts(data, node.depth, alpha, beta, ply):
            wk.value = entry_score(data, ply)
            return DO_RETURN
    path = stack_of(ctx, wk.stack).path
    may_pass = tree.null and ply > 0 and beta - alpha == 1 and node.depth >= 2 and path[ply].move != NULL_MOVE
    return DO_NULL if may_pass and exact_value(ctx, wk, tree) >= beta else DO_MOVES


@kernel(void(Context, Worker, Frame, Node, i64, i64))
def push_null(ctx, wk, frame, node, split_type, kannan_type):
    """Pass; this is worth as much as the node, or less."""
    child = above(frame)
    frame.visit.move = NULL_MOVE
    frame.visit.stage = VISIT_NULL
    frame.visit.resume = STATE_CHILD
    copy_record(child.position, frame.position)
    child.node.extended = 0
    tree = tree_at(address(child.position))
    tree.key = child_key(tree.key, tree.breadth)
    tree.value = child_value(tree.value, tree.key, tree.breadth)
    beta = node.beta
    set_child(ctx, wk, frame, node, -beta, 1 - beta, node.depth - 2, split_type, kannan_type)


@kernel(i64(Context, Worker, Frame))
def after_null(ctx, wk, frame):
    beta = frame.node.beta
    if wk.value < beta:
        begin_moves(ctx, wk, frame)
        return DO_MOVES
    wk.value = beta
    return DO_RETURN


@kernel(void(Context, Worker, Frame))
def begin_moves(ctx, wk, frame):
    node = frame.node
    if wk.ply == 0:
        begin_root_picking(stack_of(ctx, wk.stack), header_of(ctx), node)
        return
    begin_picking(node, PICK_CAPTURES)
    count = breadth_of(tree_at(address(frame.position)))
    first = max(node.tt_move, 1)
    node.moves[0] = first
    for i in range(1, count):
        node.moves[i] = i if i < first else i + 1
    node.end = count


@kernel(i64(Node))
def _picked(node):
    if node.cursor == node.end:
        node.stage = PICK_BAD_CAPTURES_START
        return NO_MOVE
    if node.stage != PICK_LIST:
        node.stage = PICK_CAPTURES if node.cursor < FIRST_QUIET else PICK_QUIETS
    move = node.moves[node.cursor]
    node.cursor += 1
    return move


@kernel(boolean(Position, Node, i64))
def _prunes(pos, node, move):
    """Every fourth of the moves that do not reach alpha. What a node is worth is known, so nothing is lost."""
    tree = tree_at(address(pos))
    if not tree.prune or node.ply == 0:
        return False
    index = child_index(tree, move)
    key = child_key(tree.key, index)
    bound = -child_value(tree.value, key, index)
    if bound > node.alpha or key >> np.uint64(62) != U0:
        return False
    node.best = max(node.best, bound)
    return True


@kernel(i64(Context, Worker, Position, Node, i64))
def next_move(ctx, wk, pos, node, home):
    while True:
        move = _picked(node)
        if move == NO_MOVE:
            return take_deferred(node)
        if not _prunes(pos, node, move):
            return move
        node.moves_done += 1


@kernel(boolean(Tables, Position, Node, i64))
def defer_move(tb, pos, node, move):
    return put_back(node, node.end, move)


@kernel(void(Context, Frame, i64))
def make_child(ctx, frame, move):
    child = above(frame)
    copy_record(child.position, frame.position)
    tree = tree_at(address(child.position))
    index = child_index(tree, move)
    tree.key = child_key(tree.key, index)
    tree.value = child_value(tree.value, tree.key, index)


@kernel(i64(Context, Worker, Frame, Node))
def child_depth(ctx, wk, frame, node):
    """Later moves are reduced. A node is worth the same at every depth, so the reduced search says the same."""
    above(frame).node.extended = 0
    depth = node.depth - 1
    frame.visit.new_depth = depth
    reduced = tree_at(address(frame.position)).reduce and frame.visit.index >= FIRST_QUIET and depth >= 2
    return depth - 1 if reduced else depth


@kernel(void(Context, Worker, Frame, Node))
def learn(ctx, wk, frame, node):
    return


@kernel(i64(Context, Worker, Frame))
def enter_quiescence(ctx, wk, frame):
    """The node's value, or at every fourth node one more move, which has no alternative."""
    tree = tree_at(address(frame.position))
    wk.counters.qnodes += 1
    if tree.noise and tree.key >> np.uint64(62) == U0:
        begin_picking(frame.node, PICK_LIST)
        frame.node.end = 1
        return DO_MOVES
    wk.value = exact_value(ctx, wk, tree)
    return DO_RETURN


@kernel(i64(Context, Worker, Frame))
def next_quiescence(ctx, wk, frame):
    node = frame.node
    if node.cursor == node.end:
        wk.value = node.best
        return DO_RETURN
    node.cursor += 1
    frame.visit.move = 1
    frame.visit.resume = STATE_QCHILD
    child = above(frame)
    copy_record(child.position, frame.position)
    tree = tree_at(address(child.position))
    tree.key = child_key(tree.key, 0)
    tree.value = -tree.value
    alpha, beta = node.alpha, node.beta
    set_child(ctx, wk, frame, node, -beta, -alpha, 0, node.split_type, node.kannan_type)
    return DO_CHILD


@kernel(i64(Context, Worker, Frame, i64))
def after_quiescence(ctx, wk, frame, value):
    node = frame.node
    node.best = value
    if value >= node.beta:
        wk.value = value
        return DO_RETURN
    return DO_MOVES
