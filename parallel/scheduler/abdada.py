"""Claims: a small shared table of the positions being searched, for the policy `abdada`.

A worker that is about to enter a position that another one is searching puts the move off and takes the next one; when
it comes back the transposition table is likely to hold the result (ABDADA, Weill 1996; the table of claims beside the
search is Kerrigan's simplification, 2013). The table is a hint: a lost or stale claim costs time, never correctness.
Any policy can be told to use it (`defer_depth`); docs/decisions/007 says why the others do not.
"""

from __future__ import annotations

import numpy as np

from psearch.core.constants import NO_MOVE
from psearch.core.intrinsics import atomic_load, atomic_store, field_address
from psearch.core.jit import kernel
from psearch.core.ordering.movepick import pick_move
from psearch.core.pruning.decisions import prunes_move
from psearch.core.pruning.sound import skips_soundly
from psearch.core.records import MAX_MOVES, MAX_PLY
from psearch.core.views import Context, Header, Node, Position, Worker, boolean, header_at, i64, tables_at, u64, void

PUT_OFF = 1 << 16
"""Set in what `next_move` returns: the move was put off once, and is searched now whoever else is at it."""
_WAYS = 4
_MOST_PUT_OFF = 32
"""So many fit behind the moves of the richest position."""
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


@kernel(boolean(Node, i64))
def put_off(node, move):
    """Give a move back that was taken from the node, to be searched last. Under the lock once open.

    Put-off moves wait at the far end of the move list. False: no room there.
    """
    if node.deferred == _MOST_PUT_OFF:
        return False
    node.deferred += 1
    node.moves[MAX_MOVES - node.deferred] = move
    node.moves_done -= 1
    return True


@kernel(i64(Context, Worker, Position, Node, i64))
def next_move(ctx, wk, pos, node, home):
    """The next move of the picker that is not pruned, or else the first one put off, with `PUT_OFF`; NO_MOVE when
    there is none. home: frame of the node."""
    hd = header_at(ctx.header)
    tb = tables_at(ctx.tables)
    sound = hd.options.pruning.sound != 0 and hd.options.shadow == 0
    while True:
        move = pick_move(tb, hd.learning, pos, node)
        if move == NO_MOVE:
            break
        if sound and skips_soundly(ctx, wk, home // MAX_PLY, pos, node, move):
            continue
        if not prunes_move(wk, hd.options.pruning, hd.learning, tb, pos, node, move):
            return move
        node.moves_done += 1
    if node.deferred == 0:
        return NO_MOVE
    # the first put off is at the end: take it and move the others up
    move = np.int64(node.moves[MAX_MOVES - 1]) | PUT_OFF
    for i in range(1, node.deferred):
        node.moves[MAX_MOVES - i] = node.moves[MAX_MOVES - i - 1]
    node.deferred -= 1
    return move
