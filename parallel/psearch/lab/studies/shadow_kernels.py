"""A search in which sound futility skips nothing: what it would skip is searched, and its bound checked.

These kernels stand in for those of the search (`SHADOWED` in `study_entries.py`) and call them. The header's first
padding holds the addresses of a `shadow_dtype` for each worker and of a `shadow_visit_dtype` for each frame.
"""

from __future__ import annotations

import numba
from numba.core import types

from psearch.lab.studies.study_entries import VIOLATIONS, shadow_dtype, shadow_visit_dtype
from psearch_core.chess.evaluation.evaluate import material
from psearch_core.chess.pruning.sound import sound_bound
from psearch_core.chess.search.children import set_child
from psearch_core.chess.search.enter_node import after_move
from psearch_core.chess.search.quiescence import after_quiescence
from psearch_core.constants import DO_CHILD, NO_SCORE, NULL_MOVE
from psearch_core.records import MAX_PLY
from psearch_core.toolchain.intrinsics import view
from psearch_core.toolchain.jit import kernel
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
    void,
)

_Shadow = numba.from_dtype(shadow_dtype)
_ShadowVisit = numba.from_dtype(shadow_visit_dtype)
assert isinstance(_Shadow, types.Record) and isinstance(_ShadowVisit, types.Record)
_shadow_at = view(_Shadow)
_visit_at = view(_ShadowVisit)
_SIZE = shadow_dtype.itemsize
_VISIT_SIZE = shadow_visit_dtype.itemsize


@kernel(_ShadowVisit(Context, Worker))
def _visit_of(ctx, wk):
    """Return the record beside the visit in the worker's frame."""
    visits = ctx.plug_in + header_of(ctx).worker_count * _SIZE  # behind the workers' records
    return _visit_at(visits + (wk.stack * MAX_PLY + wk.ply) * _VISIT_SIZE)


@kernel(boolean(Context, Worker, i64, Position, Node, i64))
def skips_nothing(ctx, wk, stack, pos, node, move):
    """Stand in for `skips_soundly`."""
    return False


@kernel(void(Context, Worker, Frame, Node, i64, i64, i64, i64, i64))
def set_child_noting(ctx, wk, frame, node, alpha, beta, depth, split_type, kannan_type):
    """Stand in for `set_child`: note what the visit's move is worth at most, if it would be skipped."""
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
    """Stand in for `after_move`: check the bound of the move, once, before its value is taken in."""
    _check(ctx, wk, frame, frame.visit.alpha, value)
    action = after_move(ctx, wk, frame, node, value)
    if action == DO_CHILD:
        _visit_of(ctx, wk).again = 1
    return action


@kernel(i64(Context, Worker, Frame, i64))
def after_quiescence_checking(ctx, wk, frame, value):
    """Stand in for `after_quiescence`: check the bound of the move before its value is taken in."""
    _check(ctx, wk, frame, frame.node.alpha, value)
    return after_quiescence(ctx, wk, frame, value)


@kernel(void(Context, Worker, Frame, i64, i64))
def _check(ctx, wk, frame, alpha, value):
    """A move has been searched, with this alpha, and is worth `value` (both in the node's view): was its bound right?

    value <= bound <= alpha, and the bound no less than what the child's own sums give.
    """
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
