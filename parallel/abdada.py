"""Simplified ABDADA (Kerrigan 2013): no split nodes; workers put off moves that another one is searching.

Every worker searches the whole tree. Before it searches a move other than the first at some depth, it looks up the
hash of position and move in a small shared table; if the move is being searched it is put off until the others are
done, when the transposition table is likely to hold its result. The table is a hint: a lost or stale entry costs
time, never correctness.
"""

from __future__ import annotations

import numpy as np

from psearch.core.constants import NO_MOVE
from psearch.core.intrinsics import atomic_load, atomic_store, field_address
from psearch.core.jit import kernel
from psearch.core.movepick import pick_move
from psearch.core.records import (
    CLAIM_SLOTS,
    MAX_MOVES,
    Context,
    Header,
    Node,
    Worker,
    boolean,
    frame_at,
    header_at,
    i64,
    tables_at,
    u64,
    void,
)

DEFER_DEPTH = 3
"""Remaining depth from which moves are put off."""
_WAYS = 4
_MOST_DEFERRED = 32
"""So many fit behind the moves of the richest position."""

_claims_of = field_address(Header, "claims")


@kernel(u64(u64, i64))
def claim_hash(key, move):
    """A hash of a move in a position; never 0."""
    return (key ^ (np.uint64(move) * np.uint64(0x9E3779B97F4A7C15))) | np.uint64(1)


@kernel(i64(Context, u64))
def _group(ctx, claim):
    slot = np.int64(claim >> np.uint64(40)) % (CLAIM_SLOTS // _WAYS) * _WAYS
    return _claims_of(header_at(ctx.header)) + 8 * slot


@kernel(boolean(Context, u64))
def is_claimed(ctx, claim):
    """Whether a worker is searching the move."""
    group = _group(ctx, claim)
    for way in range(_WAYS):  # noqa: SIM110  # numba compiles no any()
        if atomic_load(group + 8 * way) == np.int64(claim):
            return True
    return False


@kernel(void(Context, u64))
def take_claim(ctx, claim):
    """Say that this worker searches the move; a full group loses its first entry."""
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


@kernel(i64(Context, Worker, i64, Node))
def pick_unclaimed(ctx, wk, frame, node):
    """The next move that nobody else is searching, or one put off earlier; NO_MOVE when there is none.

    Sets the visit's claim. Put-off moves wait at the far end of the node's move list.
    """
    fr = frame_at(frame)
    key = fr.position.key
    shallow = node.depth < DEFER_DEPTH
    while True:
        move = pick_move(tables_at(ctx.tables), header_at(ctx.header).learning, fr.position, node)
        if move == NO_MOVE:
            break
        claim = claim_hash(key, move)
        if shallow or node.moves_done == 0:
            return move
        if node.deferred == _MOST_DEFERRED or not is_claimed(ctx, claim):
            take_claim(ctx, claim)
            fr.visit.claim = claim
            return move
        node.deferred += 1
        node.moves[MAX_MOVES - node.deferred] = move
    if node.deferred == 0:
        return NO_MOVE
    # the first put off is at the end: take it and move the others up
    move = np.int64(node.moves[MAX_MOVES - 1])
    for i in range(1, node.deferred):
        node.moves[MAX_MOVES - i] = node.moves[MAX_MOVES - i - 1]
    node.deferred -= 1
    return move
