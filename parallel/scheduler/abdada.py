"""ABDADA: a small shared table of claims, the positions being searched, keeps workers apart without splitting.

A worker that is about to enter a position that another one is searching defers the move and takes the next one; when
it comes back the transposition table is likely to hold the result (ABDADA, Weill 1996; the table of claims beside the
search is Kerrigan's simplification, 2013). The table is a hint: a lost or stale claim costs time, never correctness.
Any policy can use it (`defer_depth`); docs/decisions/007 says why the others do not.

Locks: none. A claim is one word, read and written atomically; two workers may take one slot, and one claim is lost.
"""

from __future__ import annotations

import numpy as np

from psearch.core.records import CLAIM_SLOTS, MAX_WORKERS
from psearch.core.toolchain.intrinsics import atomic_load, atomic_store, check
from psearch.core.toolchain.jit import kernel
from psearch.core.views import Context, Worker, boolean, header_of, i64, u64, void
from psearch.scheduler.words import claims_of

_WAYS = 4
_LEAST_SLOTS = 256
_SLOTS_OF_A_WORKER = 64
_WORKER_MASK = np.uint64(MAX_WORKERS - 1)


@kernel(void(Context))
def clear_claims(ctx):
    """Clear the claims: no position is being searched. The part of the table in use is small for few workers, to stay
    in their caches."""
    hd = header_of(ctx)
    slots = np.int64(_LEAST_SLOTS)
    while slots < CLAIM_SLOTS and slots < _SLOTS_OF_A_WORKER * hd.worker_count:
        slots *= 2
    hd.claim_slots = slots
    for i in range(slots):
        hd.claims[i] = 0


@kernel(u64(Worker, u64))
def claim_of(wk, key):
    """Return what the worker writes into the table for a position: the key, with its own number at the low end.

    0, which means no claim, only for worker 1,023, whose number is 0 here, and a key without any bit above: such a
    position is never claimed.
    """
    return (key & ~_WORKER_MASK) | np.uint64((wk.index + 1) & (MAX_WORKERS - 1))


@kernel(i64(Context, u64))
def _group(ctx, claim):
    hd = header_of(ctx)
    check(hd.claim_slots >= _LEAST_SLOTS, "the table of claims has been cleared")
    slot = (np.int64(claim >> np.uint64(32)) & (hd.claim_slots // _WAYS - 1)) * _WAYS
    return claims_of(hd) + 8 * slot


@kernel(boolean(Context, u64))
def is_claimed_by_another(ctx, claim):
    """Tell whether another worker than the one this claim would belong to is searching the position."""
    group = _group(ctx, claim)
    for way in range(_WAYS):
        held = np.uint64(atomic_load(group + 8 * way))
        if held ^ claim != np.uint64(0) and (held ^ claim) & ~_WORKER_MASK == np.uint64(0):
            return True
    return False


@kernel(void(Context, u64))
def take_claim(ctx, claim):
    """Claim the position that this worker searches from now on; a full group loses its first entry."""
    group = _group(ctx, claim)
    for way in range(_WAYS):
        held = atomic_load(group + 8 * way)
        if held == np.int64(claim):
            return
        if held == 0:
            atomic_store(group + 8 * way, np.int64(claim))
            return
    atomic_store(group, np.int64(claim))


@kernel(void(Context, u64))
def release_claim(ctx, claim):
    group = _group(ctx, claim)
    for way in range(_WAYS):
        if atomic_load(group + 8 * way) == np.int64(claim):
            atomic_store(group + 8 * way, 0)
