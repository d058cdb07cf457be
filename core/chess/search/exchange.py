"""Entries of the transposition table on their way from one machine to another.

An entry travels as two words, the position's key and the data word of `tt.py`. Nothing in it depends on the machine,
nor on the node above it: mates are distances from the entry's own position, the evaluation is that of the same program.
Only the age is the table's own, and is written anew by whoever takes the entry.

What a machine has sent, or has been sent, it knows by a *memory*: words without their age, each in the place that its
key says, a newer one over an older one. It forgets, and then an entry is sent once more: that costs its bytes, and
changes nothing.

What a machine has found comes from the logs of its workers (`write_store_log.py`), which hold what they have stored
lately: to look through the table itself would take the longer the larger it is. Workers may be writing meanwhile: an
entry that is being written comes out under a key that no position has.
"""

from __future__ import annotations

import numpy as np

from psearch.core.chess.chess_entries import EXCHANGE
from psearch.core.chess.search.tt import (
    entry_age,
    entry_bound,
    entry_depth,
    entry_eval,
    entry_move,
    entry_score,
    probe,
    store,
)
from psearch.core.chess.search.write_store_log import count_of
from psearch.core.constants import BOUND_EXACT, BOUND_NONE, ENTRY_BYTES, MATE, NO_SCORE, U0
from psearch.core.records import STORE_LOG_ENTRIES
from psearch.core.toolchain.intrinsics import atomic_load, high_product, relaxed_load_u64, relaxed_store_u64
from psearch.core.toolchain.jit import entry, kernel
from psearch.core.views import Context, boolean, context_at, header_of, i64, store_log_of, u64

_WITHOUT_AGE = np.uint64((1 << 58) - 1)
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
"""The high bits of a key say where it lies in the table: other ones for the memory."""


@kernel(i64(i64, i64, u64))
def _place(memory, size, key):
    """Address of the word of a key in a memory of so many words."""
    return memory + 8 * high_product(key * _SPREAD, np.uint64(size))


@kernel(boolean(i64, i64, u64, u64))
def _is_known(memory, size, key, data):
    return relaxed_load_u64(_place(memory, size, key)) == key ^ (data & _WITHOUT_AGE)


@kernel(boolean(Context, u64, u64))
def _takes(ctx, key, data):
    """Put one entry from elsewhere into the table. Whether it says more than what is there."""
    depth, bound = entry_depth(data), entry_bound(data)
    score = entry_score(data, 0)
    if bound == BOUND_NONE or abs(score) > MATE or abs(entry_eval(data)) > -NO_SCORE:
        return False
    old = probe(ctx, key)
    if old != U0:
        if entry_depth(old) > depth:
            return False
        if entry_depth(old) == depth and (entry_bound(old) == BOUND_EXACT or bound != BOUND_EXACT):
            return False
    store(ctx, header_of(ctx).age, key, entry_move(data), score, entry_eval(data), depth, bound)
    return True


@entry(i64(i64, i64, i64, i64, i64, i64, i64, i64), EXCHANGE)
def collect_entries(context, worker, least_depth, positions, memory, size, batch, room):
    """Write entries that a worker has logged in the present search into a batch: those that are this deep and not in
    the memory. Of a position that was stored several times, what the table says now. Returns how many there are, and
    how many of them were written, 2**32 times. What found no room counts as often as it was stored.

    positions: address of a word for each worker, how much of its log has been seen, which is moved on; memory: address
    of `size` words; batch: address of room for `room` entries, less than 2**31. What found no room comes the next time,
    unless the worker has logged so much by then that it is lost; what was lost since the last time counts as well.
    """
    ctx = context_at(context)
    age = header_of(ctx).age
    log = store_log_of(ctx, worker)
    written = atomic_load(count_of(log))
    seen = np.int64(relaxed_load_u64(positions + 8 * worker))
    lost = max(written - STORE_LOG_ENTRIES - seen, np.int64(0))
    seen += lost
    next_seen = written
    taken = np.int64(0)
    left = np.int64(0)
    while seen < written:
        slot = seen % STORE_LOG_ENTRIES
        data = np.uint64(log.entries[slot, 1])
        key = np.uint64(log.entries[slot, 0]) ^ data
        present = probe(ctx, key)
        if present != U0:
            data = present
        is_wanted = entry_depth(data) >= least_depth and entry_age(data) == age and entry_bound(data) != BOUND_NONE
        if is_wanted and not _is_known(memory, size, key, data):
            if taken < room:
                relaxed_store_u64(_place(memory, size, key), key ^ (data & _WITHOUT_AGE))
                relaxed_store_u64(batch + ENTRY_BYTES * taken, key)
                relaxed_store_u64(batch + ENTRY_BYTES * taken + 8, data)
                taken += 1
            else:
                next_seen = min(next_seen, seen)
                left += 1
        seen += 1
    relaxed_store_u64(positions + 8 * worker, np.uint64(next_seen))
    return (taken << 32) + min(taken + left + lost, np.int64(1) << 31)


@entry(i64(i64, i64, i64, i64, i64), EXCHANGE)
def insert_entries(context, memory, size, batch, count):
    """Take so many entries of another machine into the table, those that say more than what is there; returns how many.

    They are remembered, so that `collect_entries` does not send them on.
    """
    ctx = context_at(context)
    taken = np.int64(0)
    for i in range(count):
        key = relaxed_load_u64(batch + ENTRY_BYTES * i)
        data = relaxed_load_u64(batch + ENTRY_BYTES * i + 8)
        if _takes(ctx, key, data):
            relaxed_store_u64(_place(memory, size, key), key ^ (data & _WITHOUT_AGE))
            taken += 1
    return taken
