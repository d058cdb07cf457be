"""Lazy SMP: every worker searches a root of its own, at staggered depths."""

from __future__ import annotations

from psearch.core.toolchain.jit import kernel
from psearch.core.views import boolean, i64

_LARGEST_BLOCK = 4


@kernel(boolean(i64, i64))
def skips_depth(worker, depth):
    """Tell whether a worker leaves a depth out: helpers do so in blocks of 1, 2, 3 .. with all phases."""
    if worker == 0:
        return False
    size = 1
    phase = worker - 1
    while phase >= 2 * size:
        phase -= 2 * size
        size += 1
        if size > _LARGEST_BLOCK:
            size = 1
    return (depth + phase) // size % 2 == 1
