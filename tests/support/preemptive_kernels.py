"""Workers as coroutines: in place of `preemption_point` one loses the processor to another, at random from a seed.

Each has a machine stack of its own and changes place with another by libc's `swapcontext`, in the midst of a step if
need be. So several of them in one thread are in the protocol at once, in an order that is the same on every run.
`preemptive.py` is the other half.
"""

from __future__ import annotations

import numba
import numpy as np
from numba.core import types

from psearch.scheduler.splitting import stop_all
from psearch.scheduler.step import step
from psearch.scheduler.words import done_of
from psearch_core.arithmetic import SPLITMIX_STEP, splitmix64
from psearch_core.constants import STATE_IDLE
from psearch_core.toolchain.intrinsics import atomic_load, view
from psearch_core.toolchain.jit import entry, kernel
from psearch_core.views import Context, boolean, context_at, header_of, i64, void, worker_of

MOST = 8
_LONG_STOPS = 4
"""One in so many stops is long,"""
_LONGEST_STOP = 300
"""up to so many points."""

switching_dtype = np.dtype(
    [
        ("workers", "i8"),
        ("current", "i8"),  # worker that has the processor
        ("random", "u8"),
        ("patience", "i8"),  # at one in so many points the processor changes hands
        ("left", "i8"),  # points that may still be passed before the caller gets the processor back
        ("draining", "i8"),  # 1: who has finished a step rests until all have
        ("outside", "i8"),  # 1: the caller has the processor
        ("caller", "i8"),  # addresses of `ucontext_t`
        ("contexts", "i8", (MOST,)),
        ("resting", "i8", (MOST,)),
        ("passed", "i8"),  # points, by all
        ("wakes", "i8", (MOST,)),  # how many points must have been passed before the worker may go on
    ],
    align=True,
)
Switching = numba.from_dtype(switching_dtype)
switching_at = view(Switching)

swapcontext = types.ExternalFunction("swapcontext", types.int32(types.int64, types.int64))


@kernel(i64(Switching))
def _draw(sw):
    sw.random += SPLITMIX_STEP
    return np.int64(splitmix64(sw.random) >> np.uint64(1))


@kernel(boolean(Switching, i64, boolean))
def _may_run(sw, worker, awake_only):
    return sw.resting[worker] == 0 and (not awake_only or sw.wakes[worker] <= sw.passed)


@kernel(i64(Switching, boolean))
def _drawn_worker(sw, awake_only):
    """One of those that do not rest, -1 if all do."""
    count = 0
    for worker in range(sw.workers):
        count += 1 if _may_run(sw, worker, awake_only) else 0
    if count == 0:
        return -1
    number = _draw(sw) % count
    for worker in range(sw.workers):
        if _may_run(sw, worker, awake_only):
            if number == 0:
                return worker
            number -= 1
    return -1


@kernel(void(Switching))
def _leave_to_caller(sw):
    sw.outside = 1
    swapcontext(sw.contexts[sw.current], sw.caller)


@kernel(void(Context))
def switch_worker(ctx):
    """In place of `preemption_point`."""
    sw = switching_at(ctx.plug_in)
    if sw.outside:
        return
    if sw.left == 0:
        _leave_to_caller(sw)
        return
    sw.left -= 1
    sw.passed += 1
    if not sw.resting[sw.current] and _draw(sw) % sw.patience != 0:
        return
    if _draw(sw) % _LONG_STOPS == 0:
        sw.wakes[sw.current] = sw.passed + _draw(sw) % _LONGEST_STOP
    chosen = _drawn_worker(sw, True)
    if chosen < 0:
        chosen = _drawn_worker(sw, False)
    if chosen < 0:
        _leave_to_caller(sw)
    elif chosen != sw.current:
        before = sw.current
        sw.current = chosen
        swapcontext(sw.contexts[before], sw.contexts[chosen])


@kernel(boolean(Context, i64))
def _has_ended(ctx, worker):
    return atomic_load(done_of(header_of(ctx))) != 0 and worker_of(ctx, worker).state == STATE_IDLE


@entry(i64(i64, i64))
def run_worker(context, worker):
    """What a coroutine does; it never comes back."""
    ctx = context_at(context)
    sw = switching_at(ctx.plug_in)
    while sw.workers > 0:
        step(ctx, worker, 1)
        if sw.draining or _has_ended(ctx, worker):
            sw.resting[worker] = 1
        switch_worker(ctx)
    return 0


@entry(void(i64, i64))
def resume(context, points):
    """Let the workers run until all rest, or past so many points."""
    sw = switching_at(context_at(context).plug_in)
    sw.left = points
    sw.outside = 0
    swapcontext(sw.caller, sw.contexts[sw.current])


@entry(void(i64))
def stop_now(context):
    """As `request_stop`."""
    stop_all(context_at(context))
