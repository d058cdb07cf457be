"""Loop of a worker process around `step`: search, wait for work, notice the end. Takes no lock."""

import numpy as np

from psearch.scheduler.scheduler_entries import SEARCH
from psearch.scheduler.splitting import stop_all
from psearch.scheduler.step import step
from psearch.scheduler.words import deadline_of, done_of, info_count_of, stop_of
from psearch_core.constants import STATE_IDLE
from psearch_core.toolchain.intrinsics import (
    atomic_load,
    atomic_store,
    cycle_counter,
    monotonic_ns,
    pause,
    sched_yield,
    usleep,
)
from psearch_core.toolchain.jit import entry, kernel
from psearch_core.views import Context, context_at, header_of, i64, void, worker_of

_BURST = 1024
_SPINS = 64
_YIELDS = 256
_NAP_US = 50
_FIRST_REPORTS = 4
"""Reports of each line before which no worker stops a search that begins late: a move of depth 1 may lose a piece."""


@kernel(void(i64))
def wait_between_polls(rounds):
    """Wait a little, longer after many rounds without work, since workers may outnumber cores."""
    if rounds < _SPINS:
        for _ in range(16):
            pause()
    elif rounds < _SPINS + _YIELDS:
        sched_yield()
    else:
        usleep(np.uint32(_NAP_US))


@entry(void(i64, i64), SEARCH)
def set_deadline(context, deadline):
    """Let any worker stop the search at this time (`monotonic_ns`), after the first iterations; 0: never.

    The program would do so too, but it may wait for a core that the workers use.
    """
    atomic_store(deadline_of(header_of(context_at(context))), deadline)


@kernel(void(Context))
def _keep_deadline(ctx):
    """Stop the search when its time is over, but not before a few iterations: until then the program decides."""
    hd = header_of(ctx)
    deadline = atomic_load(deadline_of(hd))
    if deadline == 0 or atomic_load(stop_of(hd)) != 0:
        return
    has_begun = hd.first_depth > 1 or atomic_load(info_count_of(hd)) >= _FIRST_REPORTS * hd.multipv
    if has_begun and monotonic_ns() >= deadline:
        stop_all(ctx)


@entry(i64(i64, i64, i64), SEARCH)
def work(context, worker, bursts):
    """Run a worker for a number of bursts. Returns 1 if the search is done and this worker is idle."""
    ctx = context_at(context)
    hd = header_of(ctx)
    wk = worker_of(ctx, worker)
    rounds = 0
    last = cycle_counter()
    while bursts > 0:
        if wk.state == STATE_IDLE and atomic_load(done_of(hd)) != 0:
            return 1
        _keep_deadline(ctx)
        idle = step(ctx, worker, _BURST) == _BURST
        if idle:
            wait_between_polls(rounds)
            rounds += 1
        else:
            rounds = 0
        if not idle or rounds > _SPINS + _YIELDS:
            bursts -= 1
        now = cycle_counter()
        wk.counters.search_cycles += now - last
        if idle:
            wk.counters.idle_cycles += now - last
        last = now
    return 0


@entry(i64(i64), SEARCH)
def is_done(context):
    """Return 1 if every root has ended. Everything that workers wrote before can then be read."""
    return atomic_load(done_of(header_of(context_at(context))))


@entry(i64(i64), SEARCH)
def reports_written(context):
    """Return the number of reports that have been written to the ring since the search began, and can be read."""
    return atomic_load(info_count_of(header_of(context_at(context))))
