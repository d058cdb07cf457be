"""Entries of the transposition table on their way from one machine to another.

An entry travels as two words, the position's key and the data word of `tt.py`. Nothing in it depends on the machine,
nor on the node above it: mates are distances from the entry's own position, the evaluation is that of the same program.
Only the age is the table's own, and is written anew by whoever takes the entry.

What a machine has sent, or has been sent, it knows by a *memory*: words without their age, each in the place that its
key says, a newer one over an older one. It forgets, and then an entry is sent once more: that costs its bytes, and
changes nothing.

Workers may be writing to the table meanwhile: an entry that is being written comes out under a key that no position
has.
"""

from __future__ import annotations

import numpy as np

from psearch.core.constants import BOUND_EXACT, BOUND_NONE, ENTRY_BYTES, MATE, NO_SCORE, U0
from psearch.core.entries import EXCHANGE
from psearch.core.intrinsics import high_product, relaxed_load_u64, relaxed_store_u64
from psearch.core.jit import entry, kernel
from psearch.core.search.tt import (
    entry_age,
    entry_bound,
    entry_depth,
    entry_eval,
    entry_move,
    entry_score,
    probe,
    store,
)
from psearch.core.views import Context, boolean, context_at, header_of, i64, u64

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


@entry(i64(i64, i64, i64, i64, i64, i64), EXCHANGE)
def collect_entries(context, least_depth, memory, size, batch, room):
    """Write entries of the present search into a batch that are this deep and not in the memory; returns how many
    there are.

    memory: address of `size` words; batch: address of room for `room` entries. What found no room is not remembered,
    and comes with the next batch.
    """
    ctx = context_at(context)
    age = header_of(ctx).age
    where = np.int64(ctx.tt)
    count = np.int64(0)
    for _ in range(4 * np.int64(ctx.tt_clusters)):
        data = relaxed_load_u64(where + 8)
        if entry_depth(data) >= least_depth and entry_age(data) == age and entry_bound(data) != BOUND_NONE:
            key = relaxed_load_u64(where) ^ data
            if not _is_known(memory, size, key, data):
                if count < room:
                    relaxed_store_u64(_place(memory, size, key), key ^ (data & _WITHOUT_AGE))
                    relaxed_store_u64(batch + 16 * count, key)
                    relaxed_store_u64(batch + 16 * count + 8, data)
                count += 1
        where += ENTRY_BYTES
    return count


@entry(i64(i64, i64, i64, i64, i64), EXCHANGE)
def insert_entries(context, memory, size, batch, count):
    """Take so many entries of another machine into the table, those that say more than what is there; returns how many.

    They are remembered, so that `collect_entries` does not send them on.
    """
    ctx = context_at(context)
    taken = np.int64(0)
    for i in range(count):
        key = relaxed_load_u64(batch + 16 * i)
        data = relaxed_load_u64(batch + 16 * i + 8)
        if _takes(ctx, key, data):
            relaxed_store_u64(_place(memory, size, key), key ^ (data & _WITHOUT_AGE))
            taken += 1
    return taken
