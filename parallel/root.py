"""Iterative deepening with aspiration windows, run by whichever worker finishes the root.

No worker waits for the supervisor between iterations: the worker that has just finished the root reports to a ring
in the header and sets up the next search itself. There is no clock here; stopping is the supervisor's business.
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
from psearch.core.intrinsics import atomic_load, atomic_store, copy_record
from psearch.core.jit import entry, kernel
from psearch.core.records import (
    INFO_RING,
    STACK_SIZE,
    WORKER_SIZE,
    Context,
    Worker,
    context_at,
    frame_at,
    header_at,
    i64,
    stack_at,
    void,
    worker_at,
)
from psearch.splitting import abort_epoch_of, done_of, free_stack, info_count_of, state_of, stop_of

ROOT_STACK = 0
_FIRST_ASPIRATED_DEPTH = 4
_WIDEST_WINDOW = 1000


@kernel(i64(Context, Worker))
def _enter_root(ctx, wk):
    """Start a search of the root with the window in the header."""
    hd = header_at(ctx.header)
    node = frame_at(ctx.frames).node
    node.alpha = hd.root_alpha
    node.beta = hd.root_beta
    node.depth = hd.depth
    node.type = PV_NODE
    node.best_move = NO_MOVE  # a stop may come before the node is entered
    wk.ply = 0
    return STATE_ENTER


@kernel(void(Context, i64))
def _set_window(ctx, score):
    """A window around the last score, or all of it: at low depth, near mate, or when aspiration is off."""
    hd = header_at(ctx.header)
    width = np.int64(hd.options.aspiration)
    if width == 0 or hd.depth < _FIRST_ASPIRATED_DEPTH or abs(score) >= MATE_IN_MAX_PLY:
        hd.window = INFINITE
        hd.root_alpha = -INFINITE
        hd.root_beta = INFINITE
    else:
        hd.window = width
        hd.root_alpha = max(score - width, -INFINITE)
        hd.root_beta = min(score + width, INFINITE)


@kernel(void(Context, i64, i64))
def _report(ctx, score, bound):
    """Append to the ring what the supervisor shows: this depth, score, nodes and line."""
    hd = header_at(ctx.header)
    node = frame_at(ctx.frames).node
    count = atomic_load(info_count_of(hd))
    info = hd.infos[count % INFO_RING]
    info.depth = hd.depth
    info.score = score
    info.bound = bound
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
        # a bound without a line: at least its move
        info.pv[0] = hd.best_move
        info.pv_length = 1
    atomic_store(info_count_of(hd), count + 1)


@kernel(void(Context, i64))
def _bring_to_front(ctx, move):
    """Make a root move the first, the others keep their order."""
    hd = header_at(ctx.header)
    carried = np.int64(move)
    for i in range(hd.root_count):
        here = np.int64(hd.root_moves[i])
        hd.root_moves[i] = carried
        if here == move:
            break
        carried = here


@kernel(void(Context, i64))
def _take_best_move(ctx, score):
    hd = header_at(ctx.header)
    move = np.int64(frame_at(ctx.frames).node.best_move)
    if move != NO_MOVE:
        hd.best_move = move
        hd.score = score
        _bring_to_front(ctx, move)


@kernel(i64(Context, Worker))
def _end_search(ctx, wk):
    free_stack(ctx, ROOT_STACK)
    wk.stack = -1
    wk.state = STATE_IDLE
    atomic_store(done_of(header_at(ctx.header)), 1)
    return STATE_IDLE


@kernel(i64(Context, Worker))
def root_finished(ctx, wk):
    """The root has a value: report, then search again with a wider window or one ply deeper, or end."""
    hd = header_at(ctx.header)
    score = wk.value
    if score <= hd.root_alpha:
        _report(ctx, score, BOUND_UPPER)
        hd.window = min(hd.window * 3, INFINITE)
        hd.root_alpha = -INFINITE if hd.window > _WIDEST_WINDOW else max(score - hd.window, -INFINITE)
        return _enter_root(ctx, wk)
    _take_best_move(ctx, score)
    if score >= hd.root_beta:
        node = frame_at(ctx.frames).node
        node.pv_length = 1
        node.pv[0] = hd.best_move
        _report(ctx, score, BOUND_LOWER)
        hd.window = min(hd.window * 3, INFINITE)
        hd.root_beta = INFINITE if hd.window > _WIDEST_WINDOW else min(score + hd.window, INFINITE)
        return _enter_root(ctx, wk)
    _report(ctx, score, BOUND_EXACT)
    if hd.depth >= hd.max_depth or atomic_load(stop_of(hd)) != 0:
        return _end_search(ctx, wk)
    hd.depth += 1
    _set_window(ctx, score)
    return _enter_root(ctx, wk)


@kernel(i64(Context, Worker))
def root_aborted(ctx, wk):
    """The search was stopped inside an iteration: a move that has raised alpha by then is the better one."""
    node = frame_at(ctx.frames).node
    if node.best_move != NO_MOVE:
        score = np.int64(node.alpha)
        _take_best_move(ctx, score)
        _report(ctx, score, BOUND_LOWER)
    return _end_search(ctx, wk)


@kernel(void(Worker, i64))
def _reset_worker(wk, index):
    """Fresh counters for a search; killers and history are kept from the last one."""
    wk.index = index
    wk.nodes = 0
    wk.state = STATE_IDLE
    wk.stack = -1
    wk.ply = 0
    wk.seen_epoch = -1
    wk.next_check = 0
    wk.seldepth = 0
    wk.qnodes = 0
    wk.tt_probes = 0
    wk.tt_hits = 0
    wk.opens = 0
    wk.splits = 0
    wk.joins = 0
    wk.parks = 0
    wk.adopts = 0
    wk.aborts = 0
    wk.aborted_nodes = 0
    wk.polls = 0
    wk.failed_joins = 0
    wk.last_victim = 0
    wk.last_stack = index
    wk.idle_cycles = 0
    wk.search_cycles = 0


@entry(void(i64))
def begin_search(context):
    """Give the root, as set up in the header, to worker 0. Nobody else may be running.

    `root`, `root_moves`, `history`, `options`, `max_depth`, `node_limit` and `age` must have been written.
    """
    ctx = context_at(context)
    hd = header_at(ctx.header)
    for i in range(hd.worker_count):
        _reset_worker(worker_at(ctx.workers + i * WORKER_SIZE), i)
    atomic_store(stop_of(hd), 0)
    atomic_store(done_of(hd), 0)
    atomic_store(abort_epoch_of(hd), 0)
    atomic_store(info_count_of(hd), 0)
    hd.depth = 1
    hd.score = 0
    hd.best_move = np.int64(hd.root_moves[0])
    _set_window(ctx, np.int64(0))
    stack = stack_at(ctx.stacks + ROOT_STACK * STACK_SIZE)
    stack.home = -1
    stack.base = 0
    stack.path[0].key = hd.root.key
    stack.path[0].move = NO_MOVE
    frame = frame_at(ctx.frames)
    frame.visit.home = 0
    copy_record(frame.position, hd.root)
    wk = worker_at(ctx.workers)
    wk.stack = ROOT_STACK
    atomic_store(state_of(stack), STACK_ACTIVE)
    wk.state = _enter_root(ctx, wk)
