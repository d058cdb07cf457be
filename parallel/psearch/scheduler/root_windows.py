"""The windows that a root is searched with, one after the other, until its value is known.

**Principal variation search**: a window around the last value; one that is missed is followed by a wider one.

**Null windows** (MTD(f): Plaat et al. 1996): each search asks whether the value is at least so much. The first asks it
of the last value, the next ones of values farther and farther away until the answer changes, then in the middle between
what is proved from below and from above, until both meet. No alpha rises anywhere then, so nothing that others are at
goes out of date; but a value takes several searches, which live on what the ones before have left in the table. Low
depths, which one worker is through with at once, have the other way. A search may contradict one before it, for what is
pruned depends on the window: the value is then what was proved last from below. Mates are searched without a window, so
that their lines are known.

Locks: none; a root's stack is written by the worker that runs it.
"""

from __future__ import annotations

import numpy as np

from psearch_core.arithmetic import is_mate_bound
from psearch_core.constants import (
    ALL_NODE,
    BOUND_EXACT,
    BOUND_LOWER,
    BOUND_UPPER,
    CUT_NODE,
    INFINITE,
    MATE_IN_MAX_PLY,
    PV_NODE,
)
from psearch_core.toolchain.jit import kernel
from psearch_core.views import Context, Stack, boolean, header_of, i64, stack_of, void

_FIRST_ASPIRATED_DEPTH = 4
_WIDENING = 3
"""A window that was missed is so many times wider the next time,"""
_WIDEST_WINDOW = 1000
"""and beyond this half width it has no bound on that side."""
_WIDTHS, _WIDTH_STEP = 8, 5
"""Of several roots each has another first window, by fifths wider, so that not all miss the value together."""
_FIRST_STEP = 4
"""Centipawns from the first null window to the second; each step is twice as far as the one before."""


@kernel(boolean(Stack))
def proves(stack):
    """Tell whether the root's value is being proved by null windows."""
    return stack.root_beta - stack.root_alpha == 1


@kernel(boolean(Context, Stack, i64, i64))
def is_far(ctx, stack, score, bound):
    """Tell whether a null window is the first at this depth to show that the value leaves the aspiration window around
    the last one: what principal variation search would tell."""
    hd = header_of(ctx)
    before = np.int64(hd.line_scores[stack.root_line])
    width = np.int64(hd.options.aspiration)
    if bound == BOUND_UPPER:
        return score <= before - width < stack.root_high
    return score >= before + width > stack.root_low


@kernel(boolean(Stack))
def has_proof(stack):
    """Tell whether null windows have proved something from below at this depth."""
    return proves(stack) and stack.root_low > -INFINITE


@kernel(i64(Stack))
def expected_type(stack):
    """Return the type of the root for the policy: whether it will probably fail high, where the window is null."""
    if not proves(stack):
        return PV_NODE
    return ALL_NODE if has_proof(stack) else CUT_NODE


@kernel(void(Stack))
def _open_window(stack):
    """Search next without bounds."""
    stack.root_window = INFINITE
    stack.root_alpha = -INFINITE
    stack.root_beta = INFINITE


@kernel(void(Stack, i64))
def _ask(stack, value):
    """Search next whether the root is worth at least `value`; without bounds if that is a mate. Below the root, mate
    distance pruning answers a question beyond all scores with the question itself: it would be asked for ever."""
    if is_mate_bound(value):
        _open_window(stack)
        return
    stack.root_alpha = value - 1
    stack.root_beta = value


@kernel(void(Context, i64, i64))
def set_window(ctx, stack_index, score):
    """Set the first window of an iteration. score: of the iteration before.

    Without null windows it is around the score; or all there is, at low depth, near mate, or with aspiration off.
    """
    stack = stack_of(ctx, stack_index)
    options = header_of(ctx).options
    width = np.int64(options.aspiration)
    if header_of(ctx).first_roots > 1:
        width += width * (stack_index % _WIDTHS) // _WIDTH_STEP
    is_mate = is_mate_bound(score)
    stack.root_whole = 1
    if options.null_windows and stack.root_depth >= options.null_windows and not is_mate:
        stack.root_window = _FIRST_STEP
        stack.root_low = -INFINITE
        stack.root_high = INFINITE
        _ask(stack, score)
    elif width == 0 or stack.root_depth < _FIRST_ASPIRATED_DEPTH or is_mate:
        _open_window(stack)
    else:
        stack.root_window = width
        stack.root_alpha = max(score - width, -INFINITE)
        stack.root_beta = min(score + width, INFINITE)


@kernel(i64(i64, i64, i64))
def bound_of(alpha, beta, score):
    """Return what a search with this window has shown."""
    if score <= alpha:
        return BOUND_UPPER
    return BOUND_LOWER if score >= beta else BOUND_EXACT


@kernel(void(Stack, boolean))
def take_extent(stack, exhausted):
    """Take whether the last search rested on the whole of a game. A value proved by null windows does if all of them
    did; one that was found between its bounds does if that search did."""
    stack.root_whole = exhausted and (stack.root_whole != 0 or not proves(stack))


@kernel(boolean(Stack, i64, i64))
def _asks_again(stack, score, bound):
    """Take what a null window has shown; the next one is set unless the value is known."""
    if bound == BOUND_LOWER:
        stack.root_low = max(np.int64(stack.root_low), score)
    else:
        stack.root_high = min(np.int64(stack.root_high), score)
    low, high = np.int64(stack.root_low), np.int64(stack.root_high)
    step = np.int64(stack.root_window)
    if low >= high:
        return False
    if low >= MATE_IN_MAX_PLY or high <= -MATE_IN_MAX_PLY:
        _open_window(stack)
    elif low == -INFINITE:
        _ask(stack, high - step)
    elif high == INFINITE:
        _ask(stack, low + step)
    else:
        _ask(stack, low + (high - low + 1) // 2)
    stack.root_window = min(2 * step, INFINITE)
    return True


@kernel(boolean(Stack, i64, i64))
def searches_again(stack, score, bound):
    """Tell whether the root has to be searched again at this depth, after a search that has shown this; the window is
    set then."""
    if proves(stack):
        return _asks_again(stack, score, bound)
    if bound == BOUND_EXACT:
        return False
    stack.root_window = min(stack.root_window * _WIDENING, INFINITE)
    wide = stack.root_window > _WIDEST_WINDOW
    if bound == BOUND_UPPER:
        stack.root_alpha = -INFINITE if wide else max(score - stack.root_window, -INFINITE)
    else:
        stack.root_beta = INFINITE if wide else min(score + stack.root_window, INFINITE)
    return True
