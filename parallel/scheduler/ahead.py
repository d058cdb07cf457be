"""The root ahead: what workers do that find no work.

A worker that has nothing to join searches the root one ply deeper than the others, by itself, on a stack of its own:
nobody helps it, and what it finds stays in the transposition table and the histories, where the next iteration meets
it. It gives all of it up as soon as there is an offer, the iteration is through, or the search is stopped. So it still
counts as idle (`idle_workers`): who searches opens nodes for it as before.

Locks: none. The main root's moves and window are read as they are, while its worker may be changing them: they decide
only what is searched first.
"""

from __future__ import annotations

import numpy as np

from psearch.core.constants import STATE_IDLE
from psearch.core.intrinsics import atomic_add, atomic_load, atomic_store
from psearch.core.jit import kernel
from psearch.core.views import Context, Worker, boolean, header_of, i64, stack_of
from psearch.scheduler.policy import splits_nothing
from psearch.scheduler.root import MAIN_ROOT, enter_root, lay_root
from psearch.scheduler.splitting import best_offer, claim_stack, free_stack
from psearch.scheduler.words import done_of, roots_of, stop_of

_FIRST_DEPTH = 5
"""Shallower iterations are over at once."""
_NODES_A_LOOK = 32
"""Between two looks for work."""


@kernel(boolean(Context, Worker))
def begin_ahead(ctx, wk):
    """Enter the root on a free stack. False: not wanted, or not possible now."""
    hd = header_of(ctx)
    depth = np.int64(hd.depth)
    if not hd.options.ahead or splits_nothing(np.int64(hd.options.policy)) or hd.multipv > 1:
        return False
    if not _FIRST_DEPTH <= depth < hd.max_depth or atomic_load(stop_of(hd)) != 0:
        return False
    main = stack_of(ctx, MAIN_ROOT)
    alpha, beta = np.int64(main.root_alpha), np.int64(main.root_beta)
    if alpha + 1 >= beta:  # one is of the window before
        return False
    index = claim_stack(ctx, wk)
    if index < 0:
        return False
    if atomic_add(roots_of(hd), 1) == 0:  # the search is over
        atomic_add(roots_of(hd), -1)
        free_stack(ctx, index)
        return False
    stack = stack_of(ctx, index)
    lay_root(ctx, index, depth + 1)
    for i in range(hd.root_count):
        stack.root_moves[i] = main.root_moves[i]
    stack.root_alpha = alpha
    stack.root_beta = beta
    wk.stack = index
    wk.seen_epoch = -1
    wk.ahead = 1
    wk.next_look = wk.nodes + _NODES_A_LOOK
    enter_root(ctx, wk)
    return True


@kernel(boolean(Context, Worker))
def gives_up(ctx, wk):
    """At each node ahead: whether there is something better to do, or nothing any more."""
    hd = header_of(ctx)
    if atomic_load(stop_of(hd)) != 0 or stack_of(ctx, wk.stack).root_depth <= hd.depth:
        return True
    if wk.nodes < wk.next_look:
        return False
    wk.next_look = wk.nodes + _NODES_A_LOOK
    return best_offer(ctx, wk) >= 0


@kernel(i64(Context, Worker))
def end_ahead(ctx, wk):
    """Nothing of the search ahead is kept but what is in the table. Whoever ends the last root ends the search."""
    hd = header_of(ctx)
    free_stack(ctx, wk.stack)
    wk.stack = -1
    wk.ahead = 0
    if atomic_add(roots_of(hd), -1) == 1:
        wk.state = STATE_IDLE
        atomic_store(done_of(hd), 1)
    return STATE_IDLE
