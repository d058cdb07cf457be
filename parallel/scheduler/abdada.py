"""Claims: a small shared table of the positions being searched, for the policy `abdada`.

A worker that is about to enter a position that another one is searching defers the move and takes the next one; when
it comes back the transposition table is likely to hold the result (ABDADA, Weill 1996; the table of claims beside the
search is Kerrigan's simplification, 2013). The table is a hint: a lost or stale claim costs time, never correctness.
Any policy can be told to use it (`defer_depth`); docs/decisions/007 says why the others do not.
"""

from __future__ import annotations

import numpy as np

from psearch.core.intrinsics import atomic_load, atomic_store, field_address
from psearch.core.jit import kernel
from psearch.core.views import Context, Header, Worker, boolean, header_at, i64, u64, void

_WAYS = 4
_WORKER_BITS = np.uint64(1023)

_claims_of = field_address(Header, "claims")


@kernel(u64(Worker, u64))
def claim_of(wk, key):
    """What the worker writes into the table for a position; never 0, for a worker's number counts from 1 here."""
    return (key & ~_WORKER_BITS) | np.uint64((wk.index + 1) & 1023)


@kernel(i64(Context, u64))
def _group(ctx, claim):
    hd = header_at(ctx.header)
    slot = (np.int64(claim >> np.uint64(32)) & (hd.claim_slots // _WAYS - 1)) * _WAYS
    return _claims_of(hd) + 8 * slot


@kernel(boolean(Context, u64))
def is_claimed_by_another(ctx, claim):
    """Whether another worker than the one this claim would belong to is searching the position."""
    group = _group(ctx, claim)
    for way in range(_WAYS):
        held = np.uint64(atomic_load(group + 8 * way))
        if held ^ claim != np.uint64(0) and (held ^ claim) & ~_WORKER_BITS == np.uint64(0):
            return True
    return False


@kernel(void(Context, u64))
def take_claim(ctx, claim):
    """Say that this worker searches the position; a full group loses its first entry."""
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
