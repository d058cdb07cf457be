"""Claims, for ABDADA: a small shared table of the positions being searched lets workers divide work without splitting.

A worker that is about to enter a position that another one is searching defers the move and takes the next one. Later
the transposition table probably has the result (ABDADA, Weill 1996; the separate table of claims is Kerrigan's
simplification, 2013). The table is only a hint: a lost or stale claim costs time, never correctness. Any policy can use
it (option `defer_depth`); docs/decisions/trials.md says why the others do not.

Locks: none for claims. A claim is one word, read and written atomically. If two workers take one slot, one claim is
lost. A move of an open node is deferred under the node's lock.
"""

import numpy as np

from psearch.scheduler.splitting import acquire, leave, release
from psearch.scheduler.words import claims_of, closed_of, open_of
from psearch_core.constants import STATE_ENTER, STATE_NEXT
from psearch_core.game import defer_move
from psearch_core.records import CLAIM_SLOTS, MAX_WORKERS
from psearch_core.toolchain.intrinsics import atomic_load, atomic_store, check
from psearch_core.toolchain.jit import kernel
from psearch_core.views import (
    Context,
    Frame,
    Visit,
    Worker,
    above,
    boolean,
    frame_of,
    header_of,
    i64,
    tables_of,
    u64,
    void,
)

_WAYS = 4
_LEAST_SLOTS = 256
_SLOTS_OF_A_WORKER = 64
_WORKER_MASK = np.uint64(MAX_WORKERS - 1)


@kernel(void(Context))
def clear_claims(ctx):
    """Clear all claims. Few workers use only a small part of the table, which stays in their caches."""
    hd = header_of(ctx)
    slots = np.int64(_LEAST_SLOTS)
    while slots < CLAIM_SLOTS and slots < _SLOTS_OF_A_WORKER * hd.worker_count:
        slots *= 2
    hd.claim_slots = slots
    for i in range(slots):
        hd.claims[i] = 0


@kernel(u64(Worker, u64))
def _claim_of(wk, key):
    """Return the worker's claim of a position: the key, with the worker's number in the low bits.

    It is 0, which means no claim, only for worker 1,023, whose number is 0 here, and a key whose other bits are all 0;
    that position is never claimed.
    """
    return (key & ~_WORKER_MASK) | np.uint64((wk.index + 1) & (MAX_WORKERS - 1))


@kernel(i64(Context, u64))
def _group(ctx, claim):
    hd = header_of(ctx)
    check(hd.claim_slots >= _LEAST_SLOTS, "the table of claims has been cleared")
    slot = (np.int64(claim >> np.uint64(32)) & (hd.claim_slots // _WAYS - 1)) * _WAYS
    return claims_of(hd) + 8 * slot


@kernel(boolean(Context, u64))
def _is_claimed_by_another(ctx, claim):
    """Tell whether a worker other than the owner of this claim is searching the position."""
    group = _group(ctx, claim)
    for way in range(_WAYS):
        held = np.uint64(atomic_load(group + 8 * way))
        if held ^ claim != np.uint64(0) and (held ^ claim) & ~_WORKER_MASK == np.uint64(0):
            return True
    return False


@kernel(void(Context, u64))
def _take_claim(ctx, claim):
    """Claim a position that this worker is about to search; a full group loses its first entry."""
    group = _group(ctx, claim)
    for way in range(_WAYS):
        held = atomic_load(group + 8 * way)
        if held == np.int64(claim):
            return
        if held == 0:
            atomic_store(group + 8 * way, np.int64(claim))
            return
    atomic_store(group, np.int64(claim))


@kernel(i64(Context, Worker, Frame))
def _put_off(ctx, wk, frame):
    """Defer the visit's move and return the next state; `STATE_ENTER` if the move must be searched now."""
    visit = frame.visit
    node = frame_of(ctx, visit.home).node
    is_open = atomic_load(open_of(node)) != 0
    if is_open:
        acquire(ctx, wk, visit.home)
        if atomic_load(closed_of(node)) != 0:
            return leave(ctx, wk, visit.home)
    done = defer_move(tables_of(ctx), frame_of(ctx, visit.home).position, node, visit.move)
    if is_open:
        release(ctx, wk, node)
    return STATE_NEXT if done else STATE_ENTER


@kernel(i64(Context, Worker, Frame, i64))
def begin_move(ctx, wk, frame, depth):
    """Claim the position after the visit's move, already made, for a search of this depth. Returns `STATE_ENTER`, or
    another state if another worker is searching the position and the move is deferred."""
    visit = frame.visit
    least = header_of(ctx).claim_depth
    if not 0 < least <= depth:
        return STATE_ENTER
    claim = _claim_of(wk, above(frame).position.key)
    if visit.index > 0 and visit.deferred == 0 and _is_claimed_by_another(ctx, claim):
        state = _put_off(ctx, wk, frame)
        if state != STATE_ENTER:
            return state
    _take_claim(ctx, claim)
    wk.counters.claims += 1
    visit.claim = claim
    return STATE_ENTER


@kernel(void(Context, Visit))
def end_move(ctx, visit):
    """Release the visit's claim, if any, after its move was searched or aborted."""
    if visit.claim != np.uint64(0):
        group = _group(ctx, visit.claim)
        for way in range(_WAYS):
            if atomic_load(group + 8 * way) == np.int64(visit.claim):
                atomic_store(group + 8 * way, 0)
        visit.claim = np.uint64(0)
