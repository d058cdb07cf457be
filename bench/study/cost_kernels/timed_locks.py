"""A search in which taking and giving back a node's lock notes how long it is held: for `calibrate.py`.

By what was done under it, and by whether another worker had held it last. Everything else is the real search.
"""

from __future__ import annotations

import numba
import numpy as np
from numba.core import types

from cost_kernels import (
    HELD_FOR_LEARN,
    HELD_FOR_MOVE,
    HELD_FOR_NEW_MOVES,
    HELD_FOR_VALUE,
    HELD_TO_JOIN,
    HELD_TO_OPEN,
    TIMED_LOCKS,
    lock_times_dtype,
)
from psearch.scheduler.step import step
from psearch.scheduler.words import closed_of, done_of, lock_of, open_of
from psearch_core.constants import CLOSED_CUTOFF, STATE_IDLE
from psearch_core.toolchain.intrinsics import atomic_load, atomic_store, compare_and_swap, cycle_counter, pause, view
from psearch_core.toolchain.jit import entry, kernel
from psearch_core.views import Context, Node, Worker, boolean, context_at, frame_of, header_of, i64, void, worker_of

_LockTimes = numba.from_dtype(lock_times_dtype)
assert isinstance(_LockTimes, types.Record)
_lock_times_at = view(_LockTimes)
_SIZE = lock_times_dtype.itemsize


@kernel(void(Context, Worker, i64))
def acquire_timed(ctx, wk, home):
    lock = lock_of(frame_of(ctx, home).node)
    spins = 0
    before = cycle_counter()
    while not compare_and_swap(lock, 0, 1):
        spins += 1
        while atomic_load(lock) != 0:
            pause()
    _note_taken(ctx, wk, home, before, spins)


@kernel(boolean(Context, Worker, i64))
def try_acquire_timed(ctx, wk, home):
    before = cycle_counter()
    if not compare_and_swap(lock_of(frame_of(ctx, home).node), 0, 1):
        return False
    _note_taken(ctx, wk, home, before, 0)
    return True


@kernel(void(Context, Worker, i64, i64, i64))
def _note_taken(ctx, wk, home, before, spins):
    """Note when and by whom the lock was taken last, and how the node was. before: the clock when it was asked for."""
    began = cycle_counter()
    wk.last_lock = home
    frame = frame_of(ctx, home)
    times = _lock_times_at(ctx.plug_in + wk.index * _SIZE)
    times.began = began
    times.waited = began - before
    times.spins = spins
    times.other = 1 if frame.trace.entered != wk.index + 1 else 0
    times.was_open = atomic_load(open_of(frame.node))
    times.closed = atomic_load(closed_of(frame.node))
    times.stage = frame.node.stage
    times.moves_done = frame.node.moves_done
    times.joined = frame.node.joined


@kernel(void(Context, Worker, Node))
def release_timed(ctx, wk, node):
    times = _lock_times_at(ctx.plug_in + wk.index * _SIZE)
    held = cycle_counter() - times.began
    kind = np.int64(HELD_FOR_VALUE)
    if times.was_open == 0:
        kind = HELD_TO_OPEN
    elif node.joined != times.joined:
        kind = HELD_TO_JOIN
    elif times.closed == 0 and atomic_load(closed_of(node)) == CLOSED_CUTOFF:
        kind = HELD_FOR_LEARN
    elif node.stage != times.stage:
        kind = HELD_FOR_NEW_MOVES
    elif node.moves_done != times.moves_done:
        kind = HELD_FOR_MOVE
    if times.spins > 0:
        times.contended += 1
    elif held + times.waited <= times.longest:
        times.count[kind, times.other] += 1
        times.held[kind, times.other] += held
        times.taken[kind, times.other] += times.waited
    frame_of(ctx, wk.last_lock).trace.entered = wk.index + 1
    atomic_store(lock_of(node), 0)


@entry(i64(i64, i64), TIMED_LOCKS)
def search_timing_locks(context, worker):
    """Run a worker to the end of a search; the arena has been given memory for `lock_times_dtype`, one for each
    worker."""
    ctx = context_at(context)
    hd = header_of(ctx)
    wk = worker_of(ctx, worker)
    while wk.state != STATE_IDLE or atomic_load(done_of(hd)) == 0:
        if step(ctx, worker, 256) > 0:
            for _ in range(16):
                pause()
    return 0
