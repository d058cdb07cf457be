"""A log of what a worker stores in the table, for whoever sends it to other machines (`exchange.py`).

Only results of `logged_depth` and more are logged. Where nobody sends anything that is deeper than any, and a store
costs one comparison more.
"""

from __future__ import annotations

from psearch.core.constants import U0
from psearch.core.records import STORE_LOG_ENTRIES
from psearch.core.toolchain.intrinsics import atomic_load, atomic_store, field_address
from psearch.core.toolchain.jit import kernel
from psearch.core.views import Context, StoreLog, i64, store_log_of, u64, void

count_of = field_address(StoreLog, "count")


@kernel(void(Context, i64, u64, u64))
def log_store(ctx, worker, key, data):
    """Note that a worker has written this word for a key; U0: it has written none."""
    if data == U0:
        return
    log = store_log_of(ctx, worker)
    count = atomic_load(count_of(log))
    slot = count % STORE_LOG_ENTRIES
    log.entries[slot, 0] = key ^ data
    log.entries[slot, 1] = data
    atomic_store(count_of(log), count + 1)
