"""The state machine of a worker: only `step` advances a search.

Each state has one handler, which does a bounded amount of work and returns the next state. All state is in the arena,
so a worker can stop after any step and be run again later, by another driver or in another order: worker processes
(`work.py`), and the round robin and virtual time of a single process (`psearch.simulation`), call the same function.

Locks: a handler takes the lock of an open node, and gives it back before it ends, by `release` or `leave`. A worker
never returns from `step` with a lock held.
"""

import numpy as np

from psearch.scheduler.claims import begin_move, end_move
from psearch.scheduler.iterations import begin_root, count_root_move, root_aborted, root_finished
from psearch.scheduler.policies import kannan_child_type, kannan_null_child_type
from psearch.scheduler.policy import child_type, null_child_type, open_priority, opens, refined_type
from psearch.scheduler.prediction import (
    RECORD_DEPTH,
    count_shared_move,
    count_used_move,
    p_taken_move_needed,
    record_outcome,
    record_size,
)
from psearch.scheduler.splitting import (
    acquire,
    best_offer,
    count_lost,
    is_dead,
    join,
    leave,
    offer,
    open_node,
    preemption_point,
    raise_abort_epoch,
    release,
    share_cutoffs,
    stack_nodes,
    stop_all,
    unwind,
    withdraw,
)
from psearch.scheduler.trace_log import trace_abort, trace_move
from psearch.scheduler.words import abort_epoch_of, closed_of, open_of, state_of, stop_of
from psearch_core.constants import (
    CLOSED_CUTOFF,
    DO_CHILD,
    DO_CUTOFF,
    DO_NULL,
    DO_QUIESCENCE,
    DO_RETURN,
    MOVE_MASK,
    NO_MOVE,
    PASS_MAIN,
    PASS_SINGULAR,
    PV_NODE,
    STACK_ACTIVE,
    STATE_BEGIN,
    STATE_CHILD,
    STATE_ENTER,
    STATE_FINISH,
    STATE_IDLE,
    STATE_NEXT,
    STATE_QCHILD,
    STATE_QNEXT,
    STATE_ROOT,
    STATE_UNWIND,
    VISIT_FULL,
    VISIT_NULL,
    VISIT_REDUCED,
    VISIT_SCOUT,
)
from psearch_core.game import (
    after_move,
    after_null,
    after_quiescence,
    begin_moves,
    child_depth,
    enter,
    enter_quiescence,
    finish,
    finish_pass,
    learn,
    make_child,
    next_move,
    next_quiescence,
    push_move,
    push_null,
)
from psearch_core.records import CERTAIN, MAX_PLY
from psearch_core.toolchain.intrinsics import atomic_load, atomic_store, check, cycle_counter
from psearch_core.toolchain.jit import CHECK, kernel
from psearch_core.views import (
    Context,
    Frame,
    Node,
    Worker,
    above,
    below,
    boolean,
    frame_of,
    header_of,
    i64,
    racing_alpha,
    stack_of,
    void,
    worker_of,
)

_FOUND_NOTHING = -1


@kernel(i64(Context, Worker, Frame))
def _pop(ctx, wk, frame):
    """Go back to the frame below with `wk.value`."""
    if wk.ply == 0:
        return STATE_ROOT
    wk.ply -= 1
    return below(frame).visit.resume


@kernel(void(Context, Worker))
def _check_node_limit(ctx, wk):
    """Stop the search after `node_limit` nodes of all workers together. The limit is exact with one worker."""
    hd = header_of(ctx)
    if hd.node_limit == 0:
        wk.next_check = 1 << 62
        return
    total = 0
    for i in range(hd.worker_count):
        total += worker_of(ctx, i).nodes
    if total >= hd.node_limit:
        stop_all(ctx)
    else:
        wk.next_check = wk.nodes + max(1, (hd.node_limit - total) // hd.worker_count)


@kernel(i64(Context, Worker, Frame))
def _enter(ctx, wk, frame):
    node = frame.node
    hd = header_of(ctx)
    # step 0: link (1 to 6: `enter`, `begin_moves`)
    node.helped_nodes = 0
    if wk.ply == 0:
        node.open_parent = -1
    else:
        node.p_needed = below(frame).visit.p_needed
        parent_home = below(frame).visit.home
        parent = frame_of(ctx, parent_home).node
        node.open_parent = parent_home if atomic_load(open_of(parent)) != 0 else parent.open_parent
    check(node.alpha < node.beta, "a node is entered with a window")
    check(0 <= node.p_needed <= CERTAIN, "P(needed) of a node is a probability")
    if wk.nodes >= wk.next_check:
        _check_node_limit(ctx, wk)
    preemption_point(ctx)
    epoch = atomic_load(abort_epoch_of(hd))
    if epoch != wk.seen_epoch:
        wk.seen_epoch = epoch
        if is_dead(ctx, node.open_parent):
            wk.counters.aborts += 1
            return STATE_UNWIND
    wk.nodes += 1
    action = enter(ctx, wk, frame)
    if action == DO_QUIESCENCE:
        if enter_quiescence(ctx, wk, frame) == DO_RETURN:
            return _pop(ctx, wk, frame)
        return STATE_QNEXT
    if action == DO_RETURN:
        return _pop(ctx, wk, frame)
    node.split_type = refined_type(ctx, node)
    if action == DO_NULL:
        frame.visit.p_needed = node.p_needed
        frame.visit.claim = np.uint64(0)
        kannan_type = kannan_null_child_type(np.int64(node.kannan_type))
        push_null(ctx, wk, frame, node, null_child_type(ctx, node), kannan_type)
        wk.ply += 1
        return STATE_ENTER
    begin_moves(ctx, wk, frame)
    return STATE_NEXT


@kernel(i64(Context, Worker, Frame, Node, i64, i64, i64, i64))
def _descend(ctx, wk, frame, node, stage, alpha, beta, depth):
    """Enter the child of the visit's move, already made, with a window in the node's view."""
    visit = frame.visit
    index, picked = visit.index, visit.picked
    split_type = child_type(ctx, node, index, picked, stage)
    kannan_type = kannan_child_type(np.int64(node.kannan_type), index, picked, stage)
    push_move(ctx, wk, frame, node, stage, alpha, beta, depth, split_type, kannan_type)
    wk.ply += 1
    return STATE_ENTER


@kernel(i64(Context, Worker, Frame))
def _start_move(ctx, wk, frame):
    """Search the visit's move: with the full window if it is the first of a PV node, else with a null window."""
    # steps 8 and 9: make it, search it
    visit = frame.visit
    node = frame_of(ctx, visit.home).node
    visit.nodes_before = stack_nodes(ctx, wk)
    make_child(ctx, frame, visit.move)
    depth = child_depth(ctx, wk, frame, node)
    state = begin_move(ctx, wk, frame, depth)
    if state != STATE_ENTER:
        return state
    preemption_point(ctx)
    alpha = racing_alpha(node)  # read it once, since another worker may raise it
    full = visit.index == 0 and node.kannan_type == PV_NODE and node.pass_kind != PASS_SINGULAR
    stage = VISIT_FULL if full else VISIT_REDUCED if depth < visit.new_depth else VISIT_SCOUT
    beta = max(node.beta, alpha + 1) if full else alpha + 1  # not node.beta if another worker's cutoff came in between
    return _descend(ctx, wk, frame, node, stage, alpha, beta, depth)


@kernel(i64(Context, Worker, Frame))
def _next_move(ctx, wk, frame):
    """Take the next move of the node, opening it first if the policy says so."""
    # step 7: next move
    home = frame.visit.home
    node = frame_of(ctx, home).node
    was_open = atomic_load(open_of(node)) != 0
    is_open = was_open or opens(ctx, node, wk.ply)
    if was_open:
        acquire(ctx, wk, home)
        if atomic_load(closed_of(node)) != 0:
            return leave(ctx, wk, home)
    elif is_open:
        open_node(ctx, wk, home)
    return _take_move(ctx, wk, frame, node, is_open, is_open and not was_open)


@kernel(i64(Context, Worker, Frame, Node, boolean, boolean))
def _take_move(ctx, wk, frame, node, is_open, is_new):
    """Take the next move of the node, whose lock is held if it is open, and begin it; leave the node if there is none.

    is_new: the node was just opened, and is offered after this move.
    """
    home = frame.visit.home
    frame.visit.claim = np.uint64(0)
    move = next_move(ctx, wk, frame_of(ctx, home).position, node, home)
    if move == NO_MOVE:
        if not is_open:
            return STATE_FINISH
        withdraw(ctx, home)
        return leave(ctx, wk, home)
    frame.visit.move = move & MOVE_MASK
    frame.visit.deferred = move >> 16
    frame.visit.index = node.moves_done
    frame.visit.picked = node.stage
    frame.visit.p_needed = node.p_needed
    frame.visit.shared = 0
    frame.visit.under_way = 0
    node.moves_done += 1
    if is_open:
        if ctx.trace != 0:
            trace_move(ctx, wk)
        if node.inside > 1:
            frame.visit.p_needed = p_taken_move_needed(ctx, node)
            frame.visit.shared = 1
            frame.visit.under_way = node.inside - 1
            count_shared_move(wk, frame.visit.p_needed)
        node.priority = open_priority(ctx, node)
        if is_new:
            offer(ctx, home)
        release(ctx, wk, node)
    return _start_move(ctx, wk, frame)


@kernel(i64(Context, Worker, Frame))
def _size(ctx, wk, frame):
    """Return the nodes searched below the visit's move, including those of helpers."""
    return stack_nodes(ctx, wk) - frame.visit.nodes_before + above(frame).node.helped_nodes


@kernel(void(Context, Worker, Frame, Node, boolean))
def _count_size(ctx, wk, frame, node, is_finished):
    """Count the nodes of the visit's move to predict the sizes of later moves."""
    visit = frame.visit
    helped = np.int64(above(frame).node.helped_nodes)
    size = _size(ctx, wk, frame)
    if is_finished:
        record_size(wk, node, np.int64(visit.index), size)
    if visit.home == wk.stack * MAX_PLY + wk.ply:
        node.helped_nodes += helped
    elif is_finished:
        node.helped_nodes += size


@kernel(i64(Context, Worker, Frame))
def _after_child(ctx, wk, frame):
    value = -wk.value
    end_move(ctx, frame.visit)
    if frame.visit.stage == VISIT_NULL:
        wk.value = value
        return _pop(ctx, wk, frame) if after_null(ctx, wk, frame) == DO_RETURN else STATE_NEXT
    home = frame.visit.home
    node = frame_of(ctx, home).node
    is_open = atomic_load(open_of(node)) != 0
    if is_open:
        acquire(ctx, wk, home)
        if atomic_load(closed_of(node)) != 0:
            lost = stack_nodes(ctx, wk) - frame.visit.nodes_before
            is_stopped = atomic_load(stop_of(header_of(ctx))) != 0  # what a stop ends was not lost
            if (node.inside > 1 and not is_stopped) or atomic_load(closed_of(node)) == CLOSED_CUTOFF:
                if ctx.trace != 0:
                    trace_abort(ctx, wk, home, lost, 1)
                count_lost(ctx, wk, lost)  # else a visit nearer to the root includes these nodes
            return leave(ctx, wk, home)
        share_cutoffs(ctx, wk, home)
    action = after_move(ctx, wk, frame, node, value)
    if frame.visit.shared and action != DO_CHILD:
        count_used_move(wk, frame.visit.p_needed)
    if header_of(ctx).worker_count > 1:
        _count_size(ctx, wk, frame, node, action != DO_CHILD)
    if home == 0 and action != DO_CHILD:  # the main root is frame 0
        count_root_move(ctx, np.int64(frame.visit.move), _size(ctx, wk, frame))
    if action == DO_CUTOFF:
        learn(ctx, wk, frame, node)
        if not is_open:
            return STATE_FINISH
        withdraw(ctx, home)
        preemption_point(ctx)
        atomic_store(closed_of(node), CLOSED_CUTOFF)
        if node.inside > 1:
            raise_abort_epoch(ctx)
        return leave(ctx, wk, home)
    if is_open and action != DO_CHILD:
        return _take_move(ctx, wk, frame, node, True, False)  # keep the lock, since each handover costs time
    if is_open:
        release(ctx, wk, node)
    if action == DO_CHILD:
        visit = frame.visit
        alpha, beta = visit.alpha, visit.beta
        return _descend(ctx, wk, frame, node, visit.stage, alpha, beta, visit.depth)
    return STATE_NEXT


@kernel(i64(Context, Worker))
def _idle(ctx, wk):
    """Look for an open node and join it."""
    home = best_offer(ctx, wk)
    before = cycle_counter()
    if home < 0 or not join(ctx, wk, home):
        wk.counters.polls += 1
        return _FOUND_NOTHING
    wk.counters.join_cycles += cycle_counter() - before
    return _start_move(ctx, wk, frame_of(ctx, wk.stack * MAX_PLY + wk.ply))


@kernel(i64(Context, Worker, Frame))
def _finish(ctx, wk, frame):
    """Finish a pass or the node, after all moves are done or one caused a cutoff; no other worker is inside."""
    node = frame.node
    if node.pass_kind != PASS_MAIN:
        return _pop(ctx, wk, frame) if finish_pass(ctx, wk, frame) == DO_RETURN else STATE_NEXT
    if node.depth >= RECORD_DEPTH and header_of(ctx).options.record:
        record_outcome(wk, node, 1 if node.best >= node.beta else 0)
    finish(ctx, wk, frame)
    return _pop(ctx, wk, frame)


@kernel(i64(Context, Worker))
def advance(ctx, wk):
    """Run the handler of the worker's state. Returns the next state, or -1 if an idle worker found nothing to do."""
    state = wk.state
    if state == STATE_IDLE:
        return _idle(ctx, wk)
    if state == STATE_BEGIN:
        return begin_root(ctx, wk)
    frame = frame_of(ctx, wk.stack * MAX_PLY + wk.ply)
    if state == STATE_ENTER:
        return _enter(ctx, wk, frame)
    if state == STATE_NEXT:
        return _next_move(ctx, wk, frame)
    if state == STATE_CHILD:
        return _after_child(ctx, wk, frame)
    if state == STATE_QNEXT:
        if next_quiescence(ctx, wk, frame) == DO_RETURN:
            return _pop(ctx, wk, frame)
        wk.ply += 1
        return STATE_ENTER
    if state == STATE_QCHILD:
        return _pop(ctx, wk, frame) if after_quiescence(ctx, wk, frame, -wk.value) == DO_RETURN else STATE_QNEXT
    if state == STATE_FINISH:
        return _finish(ctx, wk, frame)
    if state == STATE_UNWIND:
        # the node is dead: its value is not needed
        if wk.ply == 0:
            return root_aborted(ctx, wk)
        end_move(ctx, below(frame).visit)
        return unwind(ctx, wk)
    return root_finished(ctx, wk)


@kernel(void(Context, Worker))
def _check_worker(ctx, wk):
    if CHECK:
        hd = header_of(ctx)
        check(wk.locks == 0, "no lock is held between two transitions")
        check(STATE_IDLE <= wk.state <= STATE_BEGIN, "a worker is in a state")
        is_without = wk.state in (STATE_IDLE, STATE_BEGIN)
        check(is_without == (wk.stack == -1), "an idle worker has no stack, any other has one")
        check(-1 <= wk.stack < hd.stack_count, "a stack is one of the pool")
        check(0 <= wk.ply < MAX_PLY, "a ply is one of a stack")
        if wk.stack >= 0:
            check(atomic_load(state_of(stack_of(ctx, wk.stack))) == STACK_ACTIVE, "a stack that is run is active")
            check(stack_of(ctx, wk.stack).base <= wk.ply, "a worker is at its stack's base or above")


@kernel(i64(Context, i64, i64))
def step(ctx, worker, budget):
    """Advance one worker by at most `budget` transitions.

    Returns the number of unused transitions, which is above 0 if the worker is idle and found nothing to do.
    """
    check(0 <= worker < header_of(ctx).worker_count, "a worker is one of those of the arena")
    wk = worker_of(ctx, worker)
    _check_worker(ctx, wk)
    while budget > 0:
        budget -= 1
        state = advance(ctx, wk)
        if state == _FOUND_NOTHING:
            return budget + 1
        wk.state = state
        _check_worker(ctx, wk)
    return 0
