"""Iterative deepening with aspiration windows, run by whichever worker finishes a root.

No worker waits for the supervisor between iterations: the worker that has just finished the root reports to a ring
in the header and sets up the next search itself. There is no clock here; stopping is the supervisor's business.

A search that splits has one root, on stack 0. In a search that splits nothing (Lazy SMP, ABDADA) every worker has a
root of its own on the stack of its number; only the one on stack 0 reports, and when it ends it stops the others.
"""

from __future__ import annotations

import numpy as np

from psearch.core.constants import (
    BOUND_EXACT,
    BOUND_LOWER,
    BOUND_UPPER,
    INFINITE,
    MATE_IN_MAX_PLY,
    NO_MOVE,
    PV_NODE,
    STACK_ACTIVE,
    STATE_ENTER,
    STATE_IDLE,
)
from psearch.core.intrinsics import atomic_add, atomic_load, atomic_store, copy_record
from psearch.core.jit import entry, kernel
from psearch.core.records import (
    CERTAIN,
    CLAIM_SLOTS,
    FRAME_SIZE,
    INFO_RING,
    MAX_PLY,
    ROOT_STOPPED,
    STACK_SIZE,
    TECHNIQUE_ROOM,
    WORKER_SIZE,
)
from psearch.core.views import Context, Worker, boolean, context_at, frame_at, header_at, i64, stack_at, void, worker_at
from psearch.scheduler.entries import SEARCH
from psearch.scheduler.policy import POLICY_LAZY, splits_nothing
from psearch.scheduler.prediction import idle_workers_of, merge_outcomes
from psearch.scheduler.splitting import (
    abort_epoch_of,
    become_idle,
    done_of,
    free_stack,
    info_count_of,
    roots_of,
    state_of,
    stop_all,
    stop_of,
)
from psearch.scheduler.trace_log import trace_root, trace_root_entered, trace_take

MAIN_ROOT = 0
"""The stack whose root gives the answer."""
_FIRST_ASPIRATED_DEPTH = 4
_WIDEST_WINDOW = 1000


@kernel(i64(i64))
def _root_frame(stack):
    return stack * MAX_PLY


@kernel(i64(Context, Worker))
def _enter_root(ctx, wk):
    """Start a search of this worker's root with the window on its stack."""
    stack = stack_at(ctx.stacks + wk.stack * STACK_SIZE)
    node = frame_at(ctx.frames + _root_frame(wk.stack) * FRAME_SIZE).node
    node.alpha = stack.root_alpha
    node.beta = stack.root_beta
    node.depth = stack.root_depth
    node.type = PV_NODE
    node.expected = PV_NODE
    node.cont_1 = 0
    node.cont_2 = 0
    node.extended = 0
    node.p_needed = CERTAIN
    node.best_move = NO_MOVE  # a stop may come before the node is entered
    wk.ply = 0
    if ctx.trace != 0:
        trace_root_entered(ctx, wk)
    return STATE_ENTER


@kernel(void(Context, i64, i64))
def _set_window(ctx, stack_index, score):
    """A window around the last score, or all of it: at low depth, near mate, or when aspiration is off."""
    stack = stack_at(ctx.stacks + stack_index * STACK_SIZE)
    width = np.int64(header_at(ctx.header).options.aspiration)
    if width == 0 or stack.root_depth < _FIRST_ASPIRATED_DEPTH or abs(score) >= MATE_IN_MAX_PLY:
        stack.root_window = INFINITE
        stack.root_alpha = -INFINITE
        stack.root_beta = INFINITE
    else:
        stack.root_window = width
        stack.root_alpha = max(score - width, -INFINITE)
        stack.root_beta = min(score + width, INFINITE)


@kernel(void(Context, i64, i64))
def _report(ctx, score, bound):
    """Append to the ring what the supervisor shows: depth, score, nodes and line of the main root."""
    hd = header_at(ctx.header)
    node = frame_at(ctx.frames + _root_frame(MAIN_ROOT) * FRAME_SIZE).node
    count = atomic_load(info_count_of(hd))
    info = hd.infos[count % INFO_RING]
    info.depth = hd.depth
    info.score = score
    info.bound = bound
    info.line = stack_at(ctx.stacks + MAIN_ROOT * STACK_SIZE).root_line
    total = np.int64(0)
    deepest = np.int64(0)
    for i in range(hd.worker_count):
        other = worker_at(ctx.workers + i * WORKER_SIZE)
        total += other.nodes
        deepest = max(deepest, other.seldepth)
    info.nodes = total
    info.seldepth = deepest
    info.pv_length = node.pv_length
    for i in range(node.pv_length):
        info.pv[i] = node.pv[i]
    if node.pv_length == 0:
        # a bound without a line: at least the move tried first
        stack = stack_at(ctx.stacks + MAIN_ROOT * STACK_SIZE)
        info.pv[0] = hd.best_move if stack.root_line == 0 else stack.root_moves[stack.root_line]
        info.pv_length = 1
    atomic_store(info_count_of(hd), count + 1)


@kernel(void(Context, i64, i64))
def _bring_to_front(ctx, stack_index, move):
    """Make a root move the first of those that have no line yet, the others keep their order."""
    stack = stack_at(ctx.stacks + stack_index * STACK_SIZE)
    carried = np.int64(move)
    for i in range(stack.root_line, header_at(ctx.header).root_count):
        here = np.int64(stack.root_moves[i])
        stack.root_moves[i] = carried
        if here == move:
            break
        carried = here


@kernel(void(Context, Worker, i64))
def _take_best_move(ctx, wk, score):
    hd = header_at(ctx.header)
    move = np.int64(frame_at(ctx.frames + _root_frame(wk.stack) * FRAME_SIZE).node.best_move)
    if move != NO_MOVE:
        _bring_to_front(ctx, wk.stack, move)
        line = stack_at(ctx.stacks + wk.stack * STACK_SIZE).root_line
        # a later line may turn out better than the first
        if wk.stack == MAIN_ROOT and (line == 0 or score > hd.score):
            hd.best_move = move
            hd.score = score


@kernel(i64(Context, Worker))
def _end_search(ctx, wk):
    """This worker's root is through. The main one ends the search for all; `done` follows the last."""
    hd = header_at(ctx.header)
    if wk.stack == MAIN_ROOT:
        stop_all(ctx)
    free_stack(ctx, wk.stack)
    become_idle(ctx, wk)
    if atomic_add(roots_of(hd), -1) == 1:
        wk.state = STATE_IDLE
        atomic_store(done_of(hd), 1)
    return STATE_IDLE


@kernel(boolean(i64, i64))
def _skips_depth(worker, depth):
    """The usual staggering of Lazy SMP: helpers leave out depths in blocks of 1, 2, 3 .. with all phases."""
    if worker == 0:
        return False
    size = 1
    phase = worker - 1
    while phase >= 2 * size:
        phase -= 2 * size
        size += 1
        if size > 4:
            size = 1
    return (depth + phase) // size % 2 == 1


@kernel(void(Context, Worker))
def _deepen(ctx, wk):
    """The next depth of this worker's root."""
    hd = header_at(ctx.header)
    stack = stack_at(ctx.stacks + wk.stack * STACK_SIZE)
    stack.root_depth += 1
    if hd.options.policy == POLICY_LAZY:
        while stack.root_depth < hd.max_depth and _skips_depth(wk.index, stack.root_depth):
            stack.root_depth += 1
    if wk.stack == MAIN_ROOT:
        hd.depth = stack.root_depth
        if hd.options.record and not splits_nothing(np.int64(hd.options.policy)):
            merge_outcomes(ctx)  # all others are idle: the root has just been left by the last one


@kernel(i64(i64, i64, i64))
def _bound(alpha, beta, score):
    """What a search with this window has shown."""
    if score <= alpha:
        return BOUND_UPPER
    return BOUND_LOWER if score >= beta else BOUND_EXACT


@kernel(i64(Context, Worker))
def root_finished(ctx, wk):
    """The root has a value: report, then search again: a wider window, the next line, or one ply deeper; or end."""
    hd = header_at(ctx.header)
    stack = stack_at(ctx.stacks + wk.stack * STACK_SIZE)
    main = wk.stack == MAIN_ROOT
    score = wk.value
    if ctx.trace != 0:
        trace_root(ctx, wk, score, _bound(stack.root_alpha, stack.root_beta, score))
    if score <= stack.root_alpha:
        if main:
            _report(ctx, score, BOUND_UPPER)
        stack.root_window = min(stack.root_window * 3, INFINITE)
        wide = stack.root_window > _WIDEST_WINDOW
        stack.root_alpha = -INFINITE if wide else max(score - stack.root_window, -INFINITE)
        return _enter_root(ctx, wk)
    _take_best_move(ctx, wk, score)
    if score >= stack.root_beta:
        if main:
            node = frame_at(ctx.frames + _root_frame(MAIN_ROOT) * FRAME_SIZE).node
            node.pv_length = 1
            node.pv[0] = node.best_move
            _report(ctx, score, BOUND_LOWER)
        stack.root_window = min(stack.root_window * 3, INFINITE)
        wide = stack.root_window > _WIDEST_WINDOW
        stack.root_beta = INFINITE if wide else min(score + stack.root_window, INFINITE)
        return _enter_root(ctx, wk)
    if main:
        _report(ctx, score, BOUND_EXACT)
        hd.line_scores[stack.root_line] = score
    stack.root_line += 1
    if stack.root_line < hd.multipv and atomic_load(stop_of(hd)) == 0:
        _set_window(ctx, wk.stack, np.int64(hd.line_scores[stack.root_line]))
        return _enter_root(ctx, wk)
    stack.root_line = 0
    if stack.root_depth >= hd.max_depth or atomic_load(stop_of(hd)) != 0:
        return _end_search(ctx, wk)
    _deepen(ctx, wk)
    _set_window(ctx, wk.stack, score if hd.multipv == 1 else np.int64(hd.line_scores[0]))
    return _enter_root(ctx, wk)


@kernel(i64(Context, Worker))
def root_aborted(ctx, wk):
    """The search was stopped inside an iteration: a move that has raised alpha by then is the better one."""
    node = frame_at(ctx.frames + _root_frame(wk.stack) * FRAME_SIZE).node
    if ctx.trace != 0:
        trace_root(ctx, wk, np.int64(node.alpha), ROOT_STOPPED)
    if wk.stack == MAIN_ROOT and node.best_move != NO_MOVE:
        score = np.int64(node.alpha)
        _take_best_move(ctx, wk, score)
        if node.pv_length == 0 or node.pv[0] != node.best_move:  # it failed high: a move without a line
            node.pv_length = 1
            node.pv[0] = node.best_move
        _report(ctx, score, BOUND_LOWER)
    return _end_search(ctx, wk)


@kernel(void(Worker, i64))
def _reset_worker(wk, index):
    """Fresh counters for a search; killers and outcomes are kept from the last one."""
    wk.index = index
    wk.nodes = 0
    wk.state = STATE_IDLE
    wk.stack = -1
    wk.ply = 0
    wk.seen_epoch = -1
    wk.next_check = 0
    wk.seldepth = 0
    wk.qnodes = 0
    wk.opens = 0
    wk.splits = 0
    wk.joins = 0
    wk.parks = 0
    wk.adopts = 0
    wk.aborts = 0
    wk.aborted_nodes = 0
    wk.polls = 0
    wk.failed_joins = 0
    wk.claims = 0
    wk.shadow_checked = 0
    wk.shadow_violations = 0
    for technique in range(TECHNIQUE_ROOM):
        wk.pruned[technique, 0] = 0
        wk.pruned[technique, 1] = 0
    wk.last_victim = 0
    wk.last_stack = index
    wk.last_lock = -1
    wk.join_cycles = 0
    wk.idle_cycles = 0
    wk.search_cycles = 0


@kernel(void(Context, i64))
def _begin_root(ctx, index):
    """Give worker `index` a root on the stack of its number."""
    hd = header_at(ctx.header)
    stack = stack_at(ctx.stacks + index * STACK_SIZE)
    stack.home = -1
    stack.base = 0
    stack.root_depth = 1
    stack.root_line = 0
    for i in range(hd.root_count):
        stack.root_moves[i] = hd.root_moves[i]
    _set_window(ctx, index, np.int64(0))
    stack.path[0].key = hd.root.key
    stack.path[0].move = NO_MOVE
    frame = frame_at(ctx.frames + _root_frame(index) * FRAME_SIZE)
    frame.visit.home = _root_frame(index)
    copy_record(frame.position, hd.root)
    wk = worker_at(ctx.workers + index * WORKER_SIZE)
    wk.stack = index
    if ctx.trace != 0:
        trace_take(ctx, wk)
    atomic_store(state_of(stack), STACK_ACTIVE)
    wk.state = _enter_root(ctx, wk)


@entry(void(i64), SEARCH)
def request_stop(context):
    """Tell all workers to unwind; each notices within one node."""
    stop_all(context_at(context))


@entry(void(i64), SEARCH)
def begin_search(context):
    """Give the root, as set up in the header, to worker 0, or to all where nothing is split.

    Nobody else may be running. `root`, `root_moves`, `legal_root_moves`, `history`, `options`, `max_depth`,
    `multipv`, `node_limit` and `age` must have been written.
    """
    ctx = context_at(context)
    hd = header_at(ctx.header)
    for i in range(hd.worker_count):
        _reset_worker(worker_at(ctx.workers + i * WORKER_SIZE), i)
    roots = hd.worker_count if splits_nothing(np.int64(hd.options.policy)) else 1
    atomic_store(stop_of(hd), 0)
    atomic_store(done_of(hd), 0)
    atomic_store(abort_epoch_of(hd), 0)
    atomic_store(info_count_of(hd), 0)
    atomic_store(roots_of(hd), roots)
    atomic_store(idle_workers_of(hd), hd.worker_count - roots)
    slots = np.int64(256)
    while slots < CLAIM_SLOTS and slots < 64 * hd.worker_count:
        slots *= 2
    hd.claim_slots = slots
    for i in range(slots):
        hd.claims[i] = 0
    hd.depth = 1
    hd.score = 0
    hd.best_move = np.int64(hd.root_moves[0])
    for i in range(hd.multipv):
        hd.line_scores[i] = 0
    merge_outcomes(ctx)
    for i in range(roots):
        _begin_root(ctx, i)
