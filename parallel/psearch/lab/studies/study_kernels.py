"""Kernels of the studies: replacements for kernels of search and scheduler, and alpha-beta over a uniform tree.

`psearch predict` replaces `may_open` and `open_priority`, so that nodes open by their type under Kannan's rule
(`kannan_type`), whatever the policy predicts. `psearch verify-sound` replaces the kernels of `SHADOWED` in
`soundness.py` with wrappers that search what sound futility would skip, and check its bound. The memory for plug-ins
then has a `shadow_dtype` for each worker, followed by a `shadow_visit_dtype` for each frame. `psearch leaves` searches
the artificial tree of `uniform_tree.py`, and counts what each rule predicts.
"""

from typing import cast

import numba
import numpy as np
from numba.core import types

from psearch.lab.studies.soundness import VIOLATIONS, shadow_dtype, shadow_visit_dtype
from psearch.lab.studies.uniform_tree import INFINITE, RULES, SPREAD, UNIFORM_TREE, level_dtype, uniform_dtype
from psearch.scheduler.policies import opens_as
from psearch.scheduler.policy import POLICY_KNUTH, child_type_by
from psearch_core.arithmetic import SPLITMIX_STEP, splitmix64
from psearch_core.chess.evaluation.evaluate import material
from psearch_core.chess.pruning.sound import sound_bound
from psearch_core.chess.search.children import set_child
from psearch_core.chess.search.enter_node import after_move
from psearch_core.chess.search.quiescence import after_quiescence
from psearch_core.constants import ALL_NODE, CUT_NODE, DO_CHILD, NO_SCORE, NULL_MOVE, PV_NODE, VISIT_FULL, VISIT_SCOUT
from psearch_core.game import PICK_QUIETS
from psearch_core.records import MAX_PLY
from psearch_core.toolchain.intrinsics import view
from psearch_core.toolchain.jit import entry, kernel
from psearch_core.views import (
    Context,
    Frame,
    Node,
    Position,
    Worker,
    above,
    boolean,
    frame_of,
    header_of,
    i64,
    stack_of,
    tables_of,
    u64,
    void,
)

_Shadow = cast(types.Record, numba.from_dtype(shadow_dtype))
_ShadowVisit = cast(types.Record, numba.from_dtype(shadow_visit_dtype))
_shadow_at = view(_Shadow)
_visit_at = view(_ShadowVisit)
_SIZE = shadow_dtype.itemsize
_VISIT_SIZE = shadow_visit_dtype.itemsize
Level = cast(types.Record, numba.from_dtype(level_dtype))
Uniform = cast(types.Record, numba.from_dtype(uniform_dtype))
level_at = view(Level)
uniform_at = view(Uniform)
LEVEL_SIZE = level_dtype.itemsize


@kernel(boolean(Context, Node, i64))
def may_open_as_kannan(ctx, node, ply):
    """Replace `may_open` by the rule of `kannan`."""
    return opens_as(node, np.int64(node.kannan_type))


@kernel(i64(Context, Node))
def priority_as_kannan(ctx, node):
    """Replace `open_priority` by that of `kannan`."""
    return 2 * node.depth + (1 if node.kannan_type == ALL_NODE else 0)


@kernel(_ShadowVisit(Context, Worker))
def _visit_of(ctx, wk):
    """Return the shadow record of the visit in the worker's frame."""
    visits = ctx.plug_in + header_of(ctx).worker_count * _SIZE  # they follow the workers' records
    return _visit_at(visits + (wk.stack * MAX_PLY + wk.ply) * _VISIT_SIZE)


@kernel(boolean(Context, Worker, i64, Position, Node, i64))
def skips_nothing(ctx, wk, stack, pos, node, move):
    """Replace `skips_soundly`: skip nothing."""
    return False


@kernel(void(Context, Worker, Frame, Node, i64, i64, i64, i64, i64))
def set_child_noting(ctx, wk, frame, node, alpha, beta, depth, split_type, kannan_type):
    """Replace `set_child`: also record the bound of the visit's move if sound mode would skip it."""
    beside = _visit_of(ctx, wk)
    pruning = header_of(ctx).options.pruning
    used = pruning.sound if node.depth > 0 else pruning.sound_delta
    move = frame.visit.move
    beside.bound = NO_SCORE
    if used and beside.again == 0 and move != NULL_MOVE:
        home = frame.visit.home
        beside.bound = sound_bound(ctx, home // MAX_PLY, frame_of(ctx, home).position, node, move)
    beside.again = 0
    set_child(ctx, wk, frame, node, alpha, beta, depth, split_type, kannan_type)


@kernel(i64(Context, Worker, Frame, Node, i64))
def after_move_checking(ctx, wk, frame, node, value):
    """Replace `after_move`: first check the bound of the move, once."""
    _check(ctx, wk, frame, frame.visit.alpha, value)
    action = after_move(ctx, wk, frame, node, value)
    if action == DO_CHILD:
        _visit_of(ctx, wk).again = 1
    return action


@kernel(i64(Context, Worker, Frame, i64))
def after_quiescence_checking(ctx, wk, frame, value):
    """Replace `after_quiescence`: first check the bound of the move."""
    _check(ctx, wk, frame, frame.node.alpha, value)
    return after_quiescence(ctx, wk, frame, value)


@kernel(void(Context, Worker, Frame, i64, i64))
def _check(ctx, wk, frame, alpha, value):
    """Check the bound of a searched move: value <= bound <= alpha, and bound >= M(C) + B of the child."""
    bound = _visit_of(ctx, wk).bound
    if bound == NO_SCORE:
        return
    shadow = _shadow_at(ctx.plug_in + wk.index * _SIZE)
    shadow.checked += 1
    exact = tables_of(ctx).rest_bound - material(above(frame).position)
    if exact <= bound and value <= bound and bound <= alpha:
        return
    if shadow.violations < VIOLATIONS:
        found = shadow.found[shadow.violations]
        found.move = frame.visit.move
        found.value = value
        found.bound = bound
        found.exact = exact
        found.alpha = alpha
        found.ply = wk.ply
        path = stack_of(ctx, wk.stack).path
        for ply in range(wk.ply):
            found.line[ply] = path[ply + 1].move
    shadow.violations += 1


@kernel(i64(Uniform, Level, i64))
def _judge(un, level, value):
    """Return the actual type of a node; count wrong predictions, and a value that contradicts the assigned one."""
    outcome = PV_NODE
    is_right = level.value == value
    if value >= level.beta:
        outcome = CUT_NODE
        is_right = level.value >= value
    elif value <= level.alpha_at_entry:
        outcome = ALL_NODE
        is_right = level.value <= value
    for rule in range(RULES):
        if level.expected[rule] != outcome:
            un.wrong[rule] += 1
    if not is_right:
        un.misvalued += 1
    return outcome


@kernel(i64(Uniform, Level, i64))
def _skip(un, level, first):
    """Count the children from `first` on, which a cutoff skips, and their predictions that differ from Knuth's."""
    un.skipped += un.breadth - first
    for rule in range(RULES):
        for index in range(first, un.breadth):
            said = child_type_by(rule, np.int64(level.expected[rule]), index, PICK_QUIETS, VISIT_SCOUT)
            knuth = child_type_by(POLICY_KNUTH, np.int64(level.expected[POLICY_KNUTH]), index, PICK_QUIETS, VISIT_SCOUT)
            if said != knuth:
                un.unlike_knuth[rule] += 1
    return un.skipped


@kernel(u64(u64, i64))
def child_key(key, index):
    """Return the key of a node's child."""
    return splitmix64(key + np.uint64(index + 1) * SPLITMIX_STEP)


@kernel(i64(i64, u64, i64))
def child_value(value, key, index):
    """Return the value assigned to a child, from its parent's value and its key and index."""
    return -value + (np.int64(key % np.uint64(SPREAD)) if index > 0 else 0)


@kernel(i64(Uniform, Level, Level))
def _enter(un, parent, child):
    """Set up a child with value, window and predictions of all rules; return its index."""
    index = np.int64(parent.index)
    parent.index = index + 1
    child.key = child_key(parent.key, index)
    child.value = child_value(np.int64(parent.value), child.key, index)
    child.alpha = -np.int64(parent.beta)
    child.beta = -np.int64(parent.alpha)
    child.alpha_at_entry = child.alpha
    child.best = -INFINITE
    child.index = 0
    for rule in range(RULES):
        first = index == 0 and parent.expected[rule] == PV_NODE
        stage = VISIT_FULL if first else VISIT_SCOUT
        child.expected[rule] = child_type_by(rule, np.int64(parent.expected[rule]), index, PICK_QUIETS, stage)
    return index


@entry(i64(i64, i64), UNIFORM_TREE)
def search_uniform(address, budget):
    """Continue the search for `budget` nodes; return 1 when it is done, else 0. address: a `uniform_dtype` record."""
    un = uniform_at(address)
    ply = np.int64(un.ply)
    for _ in range(budget):
        level = level_at(un.levels + ply * LEVEL_SIZE)
        if ply == un.depth:
            value = np.int64(level.value)
            un.leaves[_judge(un, level, value)] += 1
        elif level.best >= level.beta or level.index == un.breadth:
            value = np.int64(level.best)
            if value >= level.beta:
                _skip(un, level, np.int64(level.index))
            un.inner[_judge(un, level, value)] += 1
        else:
            _enter(un, level, level_at(un.levels + (ply + 1) * LEVEL_SIZE))
            ply += 1
            continue
        ply -= 1
        if ply < 0:
            un.found = value
            un.ply = ply
            return 1
        parent = level_at(un.levels + ply * LEVEL_SIZE)
        if -value > parent.best:
            parent.best = -value
            if -value > parent.alpha:
                parent.alpha = -value
    un.ply = ply
    return 0
