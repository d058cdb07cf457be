"""Shares a node: open, offer, join, leave, park, adopt, abort.

An open node is shared in place: opening copies nothing, and all workers take moves through the same cursor. A helper
gets a separate stack, whose base frame holds the node's position and the helper's visit. No worker owns an open node:
the last one to leave finishes it and continues on the node's stack, which its former runner may have parked long ago.
So no worker ever waits for helpers (DTS, Hyatt 1997).

A node is identified by the number of its frame, `home`: stack * MAX_PLY + ply.

Locks: a node's lock protects all of an open node. A few fields are deliberately read without it, each atomically
(`racing_` in `psearch_core.views`): alpha when a move begins (`_start_move` in `step.py`, `reduction_of`); the killers
and the table's move for reductions and extensions; the priority by workers that look for a node to join. An outdated
alpha may cost another search, the other fields a worse choice. A worker holds at most one lock.

Invariants, checked by `validate.py`:

- `open`, `closed`, `inside` and the bit in `open_mask` change only under the node's lock;
- the bit is set exactly while the node is open, not closed, and not known to be out of moves;
- a worker inside a node is inside all its open ancestors, so a chain of `open_parent` links never dangles;
- when the root finishes, no worker is left in the tree.

A cutoff closes a node and raises `abort_epoch` if others are inside. Each worker compares the epoch at every node and,
if it has changed, walks up its chain of open ancestors; a closed one means that the worker's subtree is dead. The order
matters: `closed` is written before the epoch rises, and a worker that joins always walks its chain once.
"""

import numpy as np

from psearch.scheduler.policy import open_priority
from psearch.scheduler.prediction import count_shared_move, p_taken_move_needed
from psearch.scheduler.trace_log import (
    trace_abort,
    trace_idle,
    trace_join,
    trace_open,
    trace_split,
    trace_take,
    trace_time,
)
from psearch.scheduler.words import (
    abort_epoch_of,
    closed_of,
    idle_workers_of,
    lock_of,
    mask_of,
    open_of,
    state_of,
    stop_of,
)
from psearch_core.arithmetic import splitmix64
from psearch_core.constants import (
    CLOSED_ABORTED,
    MOVE_MASK,
    NO_MOVE,
    STACK_ACTIVE,
    STACK_FREE,
    STACK_PARKED,
    STATE_FINISH,
    STATE_IDLE,
    STATE_UNWIND,
)
from psearch_core.game import next_move
from psearch_core.records import MAX_PLY, path_dtype
from psearch_core.toolchain.intrinsics import (
    address,
    atomic_add,
    atomic_and,
    atomic_load,
    atomic_or,
    atomic_store,
    check,
    compare_and_swap,
    copy_bytes,
    copy_record,
    cycle_counter,
    lowest_bit,
    pause,
    sched_yield,
    usleep,
)
from psearch_core.toolchain.jit import CHECK, YIELDS, kernel
from psearch_core.views import (
    Context,
    Node,
    Stack,
    Worker,
    boolean,
    frame_of,
    header_of,
    i64,
    racing_priority,
    stack_of,
    u64,
    void,
)

_PATH_OFFSET = Stack.offset("path")
_PATH_ENTRY = path_dtype.itemsize
_LOOKS_BEFORE_YIELD = 16
_MOST_PAUSES = 16
"""Greatest number of pauses between two looks at a lock, a fraction of a microsecond. Waiting workers then look at
different times, so that one takes a released lock before the others fetch its cache line (Anderson 1990)."""
_LONGEST_NAP_US = 128


# -- between two steps -----------------------------------------------------------------------------------------------


@kernel(void(Context))
def preemption_point(ctx):
    """Mark a point between two steps that other workers can see. It does nothing except in a build with `YIELDS`, where
    the worker yields its core one in eight times, and sleeps a while one in 64 times. Tests replace this kernel."""
    if YIELDS:
        draw = np.int64(splitmix64(np.uint64(cycle_counter())) >> np.uint64(1))
        if draw & 63 == 0:
            usleep(np.uint32((draw >> 6) % _LONGEST_NAP_US))
        elif draw & 7 == 0:
            sched_yield()


# -- locks -----------------------------------------------------------------------------------------------------------


@kernel(void(Context, Worker, i64))
def acquire(ctx, wk, home):
    """Lock the node of this frame. A worker holds one lock at a time, so there are no deadlocks.

    A lock is usually held for a few hundred instructions, but for thousands if moves are generated, sorted or pruned,
    or histories updated after a cutoff. A waiting worker spins, and yields its core now and then, since workers may
    outnumber cores.
    """
    check(wk.locks == 0, "a worker holds one lock at a time")
    wk.last_lock = home
    lock = lock_of(frame_of(ctx, home).node)
    looks = 0
    pauses = 1
    preemption_point(ctx)
    while not compare_and_swap(lock, 0, 1):
        while atomic_load(lock) != 0:
            preemption_point(ctx)
            looks += 1
            if looks % _LOOKS_BEFORE_YIELD == 0:
                sched_yield()
            for _ in range(pauses):
                pause()
            pauses = min(2 * pauses, _MOST_PAUSES)
    if CHECK:
        wk.locks = 1
    preemption_point(ctx)


@kernel(boolean(Context, Worker, i64))
def try_acquire(ctx, wk, home):
    """Lock the node of this frame unless another worker holds the lock; for helpers, which can find other work."""
    check(wk.locks == 0, "a worker holds one lock at a time")
    preemption_point(ctx)
    if not compare_and_swap(lock_of(frame_of(ctx, home).node), 0, 1):
        return False
    wk.last_lock = home
    if CHECK:
        wk.locks = 1
    preemption_point(ctx)
    return True


@kernel(boolean(Context, i64))
def is_held(ctx, home):
    """Tell whether a worker holds the lock of this node now. In virtual time the simulation's clock decides instead."""
    return atomic_load(lock_of(frame_of(ctx, home).node)) != 0


@kernel(void(Context, Worker, Node))
def release(ctx, wk, node):
    """Unlock the node that this worker has locked."""
    check(wk.locks == 1, "what a worker unlocks it has locked")
    _check_locked(node)
    if CHECK:
        wk.locks = 0
    preemption_point(ctx)
    atomic_store(lock_of(node), 0)
    preemption_point(ctx)


@kernel(void(Node))
def _check_locked(node):
    if CHECK:
        check(atomic_load(lock_of(node)) == 1, "the node is locked")


# -- stacks and offers -----------------------------------------------------------------------------------------------


@kernel(i64(Context, Worker))
def claim_stack(ctx, wk):
    """Return a free stack, made active; -1 if there is none. The search starts where this worker last found one."""
    hd = header_of(ctx)
    count = hd.stack_count
    start = wk.last_stack % count
    for i in range(count):
        index = start + i
        if index >= count:
            index -= count
        state = state_of(stack_of(ctx, index))
        if atomic_load(state) == STACK_FREE and compare_and_swap(state, STACK_FREE, STACK_ACTIVE):
            wk.last_stack = index
            preemption_point(ctx)
            return index
    return -1


@kernel(i64(Context, Worker))
def stack_nodes(ctx, wk):
    """Return the nodes searched on this worker's stack so far, including those of its former runners."""
    return wk.nodes + stack_of(ctx, wk.stack).nodes_before_runner


@kernel(void(Context, Worker, i64))
def count_lost(ctx, wk, nodes):
    """Count nodes of this worker's stack that were searched in vain, and subtract them from the stack's nodes, so that
    they are not counted again if a visit nearer to the root is aborted, too."""
    wk.counters.aborted_nodes += nodes
    stack_of(ctx, wk.stack).nodes_before_runner -= nodes


@kernel(void(Context, i64))
def free_stack(ctx, index):
    preemption_point(ctx)
    atomic_store(state_of(stack_of(ctx, index)), STACK_FREE)


@kernel(void(Context, Worker))
def become_idle(ctx, wk):
    """Make this worker idle, without a stack."""
    preemption_point(ctx)
    wk.stack = -1
    atomic_add(idle_workers_of(header_of(ctx)), 1)
    if ctx.trace != 0:
        trace_idle(ctx, wk)


@kernel(i64(Context, i64))
def _mask_word(ctx, home):
    """Return the address of the mask word with the bit of an open node, whose lock is held."""
    _check_locked(frame_of(ctx, home).node)
    preemption_point(ctx)
    return mask_of(stack_of(ctx, home // MAX_PLY)) + 8 * (home % MAX_PLY >> 6)


@kernel(void(Context, i64))
def offer(ctx, home):
    """Set the bit by which idle workers find an open node. Called under its lock."""
    atomic_or(_mask_word(ctx, home), 1 << (home & 63))


@kernel(void(Context, i64))
def withdraw(ctx, home):
    """Clear the bit of a node that is closed or out of moves. Called under its lock."""
    atomic_and(_mask_word(ctx, home), ~(1 << (home & 63)))


@kernel(void(Context, Worker, i64))
def open_node(ctx, wk, home):
    """Make the node of this worker's own frame a split node, with this worker inside, and keep it locked. The worker
    takes a move first, then offers the node with the priority that remains."""
    node = frame_of(ctx, home).node
    acquire(ctx, wk, home)  # a worker with an outdated offer may be looking at this frame
    node.joined = 0
    node.inside = 1
    if ctx.trace != 0:
        trace_open(ctx, wk, home)
    atomic_store(closed_of(node), 0)
    preemption_point(ctx)
    atomic_store(open_of(node), 1)
    wk.counters.opens += 1


@kernel(i64(Context, Worker, i64, u64, i64))
def _best_in_word(ctx, wk, first, mask_bits, best):
    """Return the best of the open nodes in one mask word; `best` and result are priority << 32 | frame number."""
    while mask_bits != np.uint64(0):
        home = first + lowest_bit(mask_bits)
        mask_bits &= mask_bits - np.uint64(1)
        priority = racing_priority(frame_of(ctx, home).node)
        if priority > best >> 32:
            if is_held(ctx, home):
                wk.counters.held_offers += 1
            else:
                best = (priority << 32) | home
    return best


@kernel(i64(Context, Worker))
def best_offer(ctx, wk):
    """Return the frame number of the open node with the greatest priority, -1 if there is none. Takes no lock.

    Nodes whose lock is held are skipped. All idle workers want the same node; if they waited for its lock, workers
    inside would have to wait behind them with their results (docs/decisions/024).
    """
    count = header_of(ctx).stack_count
    best = np.int64(0)
    for i in range(count):
        index = wk.last_victim + i
        if index >= count:
            index -= count
        words = mask_of(stack_of(ctx, index))
        for half in range(2):
            mask = atomic_load(words + 8 * half)
            if mask != 0:
                best = _best_in_word(ctx, wk, index * MAX_PLY + 64 * half, np.uint64(mask), best)
    return best & 0xFFFFFFFF if best != 0 else -1


# -- join ------------------------------------------------------------------------------------------------------------


@kernel(void(Context, Worker, i64, i64))
def _copy_line(ctx, wk, stack, home):
    """Copy the line to the split node `home`, and its position, to a helper's stack.

    The helper is inside, so the split node's stack cannot change up to that ply.
    """
    ply = home % MAX_PLY
    own = stack_of(ctx, stack)
    own.home = home
    own.base = ply
    own.nodes_before_runner = -wk.nodes
    source = stack_of(ctx, home // MAX_PLY)
    own.root_depth = source.root_depth
    copy_bytes(address(own) + _PATH_OFFSET, address(source) + _PATH_OFFSET, (ply + 1) * _PATH_ENTRY)
    copy_record(frame_of(ctx, stack * MAX_PLY + ply).position, frame_of(ctx, home).position)
    for behind in range(ply + 1, min(ply + 3, MAX_PLY)):
        count = source.cutoffs[behind]
        own.cutoffs[behind] = count
        own.cutoffs_taken[behind - ply - 1] = count


@kernel(void(Context, Worker, i64))
def share_cutoffs(ctx, wk, home):
    """Add a helper's counts of cutoffs after the split node `home` to those of its stack, and copy the sums back.

    Later moves are reduced more after many cutoffs (`lmr_cutoffs`), whichever worker found them. The node's lock is
    held, but the runner of its stack counts without the lock, so an addition may be lost.
    """
    split = home // MAX_PLY
    if split == wk.stack:
        return
    own = stack_of(ctx, wk.stack)
    shared = stack_of(ctx, split)
    ply = home % MAX_PLY
    for behind in range(ply + 1, min(ply + 3, MAX_PLY)):
        count = shared.cutoffs[behind] + own.cutoffs[behind] - own.cutoffs_taken[behind - ply - 1]
        shared.cutoffs[behind] = count
        own.cutoffs[behind] = count
        own.cutoffs_taken[behind - ply - 1] = count


@kernel(boolean(Context, Worker, i64))
def join(ctx, wk, home):
    """Become a helper at an open node and take a move, which goes into the visit of the new stack's base frame.

    Returns False if there is no move, no stack is free, or another worker holds the lock.
    """
    began = trace_time(ctx, wk) if ctx.trace != 0 else 0
    stack = claim_stack(ctx, wk)
    if stack < 0:
        return False
    split = frame_of(ctx, home)
    node = split.node
    if not try_acquire(ctx, wk, home):
        free_stack(ctx, stack)
        wk.counters.failed_joins += 1
        return False
    move = np.int64(NO_MOVE)
    if atomic_load(open_of(node)) != 0 and atomic_load(closed_of(node)) == 0:
        move = next_move(ctx, wk, split.position, node, home)
        if move == NO_MOVE:
            withdraw(ctx, home)
    if move == NO_MOVE:
        release(ctx, wk, node)
        free_stack(ctx, stack)
        wk.counters.failed_joins += 1
        return False
    check(node.inside > 0, "who opened a node, or joined it before, is inside")
    node.inside += 1
    node.joined += 1
    index = np.int64(node.moves_done)
    picked = np.int64(node.stage)
    node.moves_done += 1
    p_needed = p_taken_move_needed(ctx, node)
    under_way = node.inside - 1
    node.priority = open_priority(ctx, node)
    release(ctx, wk, node)
    atomic_add(idle_workers_of(header_of(ctx)), -1)

    _copy_line(ctx, wk, stack, home)
    preemption_point(ctx)
    visit = frame_of(ctx, stack * MAX_PLY + home % MAX_PLY).visit
    visit.home = home
    visit.move = move & MOVE_MASK
    visit.deferred = move >> 16
    visit.index = index
    visit.picked = picked
    visit.p_needed = p_needed
    visit.shared = 1
    visit.under_way = under_way
    count_shared_move(wk, p_needed)
    visit.claim = np.uint64(0)
    wk.stack = stack
    wk.ply = home % MAX_PLY
    wk.seen_epoch = -1
    wk.last_victim = home // MAX_PLY
    wk.counters.joins += 1
    if ctx.trace != 0:
        trace_join(ctx, wk, home, began)
    return True


# -- leave -----------------------------------------------------------------------------------------------------------


@kernel(i64(Context, Worker, i64))
def leave(ctx, wk, home):
    """Leave the open node of frame `home`, whose lock is held, and release the lock. Returns the worker's next state.

    The last worker takes over the node's stack, to finish the node, or to unwind further if it was aborted. Any other
    worker parks this stack (its runner) or frees its own (a helper) and becomes idle.
    """
    node = frame_of(ctx, home).node
    helper = wk.stack * MAX_PLY + wk.ply != home
    home_stack = home // MAX_PLY
    _check_locked(node)
    check(node.inside > 0, "who leaves a node was inside")
    node.inside -= 1
    last = node.inside == 0
    closed = atomic_load(closed_of(node))
    check(0 <= closed <= CLOSED_ABORTED, "a node is not closed, cut off or aborted")
    if last:
        withdraw(ctx, home)
        preemption_point(ctx)
        atomic_store(open_of(node), 0)
        if node.joined > 0:
            wk.counters.splits += 1
    elif not helper:
        parked = stack_of(ctx, home_stack)
        parked.parked_ply = wk.ply
        parked.nodes_before_runner += wk.nodes
        preemption_point(ctx)
        atomic_store(state_of(parked), STACK_PARKED)
    release(ctx, wk, node)

    if ctx.trace != 0 and last and node.joined > 0:
        trace_split(ctx, wk, home, closed)
    if helper:
        free_stack(ctx, wk.stack)
    if not last:
        if not helper:
            wk.counters.parks += 1
        become_idle(ctx, wk)
        return STATE_IDLE
    if helper:
        preemption_point(ctx)
        atomic_store(state_of(stack_of(ctx, home_stack)), STACK_ACTIVE)
        wk.stack = home_stack
        stack_of(ctx, home_stack).nodes_before_runner -= wk.nodes
        wk.seen_epoch = -1
        wk.counters.adopts += 1
        if ctx.trace != 0:
            trace_take(ctx, wk)
    return STATE_UNWIND if closed == CLOSED_ABORTED else STATE_FINISH


# -- abort -----------------------------------------------------------------------------------------------------------


@kernel(boolean(Context, i64))
def is_dead(ctx, open_parent):
    """Tell whether the search was stopped, or a node in the chain of open nodes that starts here was closed."""
    if atomic_load(stop_of(header_of(ctx))) != 0:
        return True
    while open_parent >= 0:
        preemption_point(ctx)
        node = frame_of(ctx, open_parent).node
        if CHECK:
            check(atomic_load(open_of(node)) == 1, "a chain of open nodes has open nodes only")
        if atomic_load(closed_of(node)) != 0:
            return True
        open_parent = np.int64(node.open_parent)
    return False


@kernel(void(Context))
def raise_abort_epoch(ctx):
    preemption_point(ctx)
    atomic_add(abort_epoch_of(header_of(ctx)), 1)


@kernel(void(Context))
def stop_all(ctx):
    """End the search: every worker notices within one node and unwinds."""
    atomic_store(stop_of(header_of(ctx)), 1)
    raise_abort_epoch(ctx)


@kernel(i64(Context, Worker))
def unwind(ctx, wk):
    """Give up the dead frame at `wk.ply` and go to its parent. Returns the next state.

    At a split node the worker leaves. If the node was cut off and no ancestor is dead, its value is final; otherwise it
    is marked as aborted, so that the last worker to leave continues to unwind.
    """
    check(wk.ply > 0, "what is unwound has a parent")
    wk.ply -= 1
    visit = frame_of(ctx, wk.stack * MAX_PLY + wk.ply).visit
    home = np.int64(visit.home)
    lost = stack_nodes(ctx, wk) - visit.nodes_before
    node = frame_of(ctx, home).node
    if atomic_load(open_of(node)) == 0:
        return STATE_UNWIND
    dead = is_dead(ctx, np.int64(node.open_parent))
    acquire(ctx, wk, home)
    if dead:
        atomic_store(closed_of(node), CLOSED_ABORTED)
        withdraw(ctx, home)
    # count before leaving, since the last worker to leave the main root merges all outcomes
    unwinds_on = node.inside == 1 and atomic_load(closed_of(node)) == CLOSED_ABORTED
    is_stopped = atomic_load(stop_of(header_of(ctx))) != 0  # after a stop no work counts as lost
    if not unwinds_on and not is_stopped:  # if it unwinds on, a visit nearer to the root includes these nodes
        if ctx.trace != 0:
            trace_abort(ctx, wk, home, lost, 0)
        count_lost(ctx, wk, lost)
        if not dead:
            wk.outcomes.wasted[node.split_type] += lost
    return leave(ctx, wk, home)
