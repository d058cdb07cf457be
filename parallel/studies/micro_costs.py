"""Small loops around single operations, for `psearch calibrate`. Each returns time stamp counter cycles.

They run on a scratch arena that `calibrate.py` prepares, never on one that is searched. Everything they touch is in
the first-level cache, as it is when a worker opens or leaves the node it has just been in; a lock or an offer that
another core wrote last costs more.
"""

from __future__ import annotations

import numpy as np

from psearch.core.constants import CLOSED_CUTOFF, STACK_ACTIVE
from psearch.core.intrinsics import atomic_add, atomic_store, cycle_counter
from psearch.core.jit import entry
from psearch.core.records import FRAME_SIZE, STACK_SIZE, WORKER_SIZE
from psearch.core.views import context_at, frame_at, header_at, i64, stack_at, worker_at
from psearch.scheduler.prediction import idle_workers_of
from psearch.scheduler.splitting import (
    acquire,
    best_offer,
    closed_of,
    is_dead,
    leave,
    open_node,
    open_of,
    release,
    state_of,
    unwind,
    withdraw,
)
from psearch.scheduler.work import wait_between_polls


@entry(i64(i64, i64, i64))
def time_locks(context, frame_index, rounds):
    """Lock and unlock a node."""
    node = frame_at(context_at(context).frames + frame_index * FRAME_SIZE).node
    before = cycle_counter()
    for _ in range(rounds):
        acquire(node)
        release(node)
    return cycle_counter() - before


@entry(i64(i64, i64, i64))
def time_polls(context, worker, rounds):
    """Look for work where there is none, and pause before the next look as the process driver does."""
    ctx = context_at(context)
    wk = worker_at(ctx.workers + worker * WORKER_SIZE)
    before = cycle_counter()
    for _ in range(rounds):
        if best_offer(ctx, wk) >= 0:
            return -1
        wait_between_polls(0)
    return cycle_counter() - before


@entry(i64(i64, i64, i64, i64))
def time_opens(context, worker, frame_index, rounds):
    """Open a node, its lock included."""
    ctx = context_at(context)
    wk = worker_at(ctx.workers + worker * WORKER_SIZE)
    before = cycle_counter()
    for _ in range(rounds):
        open_node(ctx, wk, frame_index)
    cycles = cycle_counter() - before
    withdraw(ctx, frame_index)
    atomic_store(open_of(frame_at(ctx.frames + frame_index * FRAME_SIZE).node), 0)
    return cycles


@entry(i64(i64, i64, i64, i64))
def time_leaves(context, worker, frame_index, rounds):
    """Leave an open node that lies in the worker's own stack, a helper staying inside: lock, park, unlock."""
    ctx = context_at(context)
    wk = worker_at(ctx.workers + worker * WORKER_SIZE)
    node = frame_at(ctx.frames + frame_index * FRAME_SIZE).node
    idle = idle_workers_of(header_at(ctx.header))
    stack = wk.stack
    state = state_of(stack_at(ctx.stacks + stack * STACK_SIZE))
    atomic_store(open_of(node), 1)
    before = cycle_counter()
    for _ in range(rounds):
        node.inside = 2
        acquire(node)
        leave(ctx, wk, frame_index)
        wk.stack = stack
        atomic_store(state, STACK_ACTIVE)
    cycles = cycle_counter() - before
    atomic_store(open_of(node), 0)
    atomic_add(idle, -rounds)
    return cycles


@entry(i64(i64, i64, i64, i64))
def time_aborts(context, worker, plies, rounds):
    """Find that the node at ply 0 of the worker's stack was cut off, and unwind to it from `plies` above."""
    ctx = context_at(context)
    wk = worker_at(ctx.workers + worker * WORKER_SIZE)
    node = frame_at(ctx.frames).node
    atomic_store(open_of(node), 1)
    atomic_store(closed_of(node), CLOSED_CUTOFF)
    dead = np.int64(0)
    before = cycle_counter()
    for _ in range(rounds):
        wk.ply = plies + 1
        if is_dead(ctx, 0):
            dead += 1
        for _ply in range(plies):
            unwind(ctx, wk)
    cycles = cycle_counter() - before
    atomic_store(open_of(node), 0)
    atomic_store(closed_of(node), 0)
    wk.ply = 0
    return cycles if dead == rounds else -1
