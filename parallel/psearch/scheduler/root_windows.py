"""Windows with which a root is searched, one after another, until its value is known.

**Principal variation search**: the first window is around the last value; after a miss the window is widened.

**Null windows** (MTD(f): Plaat et al. 1996): each search asks whether the value is at least a given number. The first
number is the last value, the next ones are farther and farther away until the answer changes, then in the middle
between the proved bounds, until both meet. No alpha rises during a search, so no work of other workers becomes
outdated; but a value takes several searches, which rely on results in the table. Low depths, which one worker finishes
at once, use principal variation search. A search may contradict an earlier one, since pruning depends on the window;
the value is then the last proved lower bound. Mates are searched without a window, so that their lines are known.

Locks: none; a root's stack is written only by the worker that runs it.
"""

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
"""Factor by which a window is widened after the value missed it."""
_WIDEST_WINDOW = 1000
"""Greatest half width of a window, in centipawns; a wider one is unbounded on that side."""
_WIDTHS, _WIDTH_STEP = 8, 5
"""Number of different first windows of several roots, each wider by a fifth, so that not all miss the value at once."""
_FIRST_STEP = 4
"""Distance from the first null window to the second, in centipawns; each next step is twice as long."""


@kernel(boolean(Stack))
def proves(stack):
    """Tell whether the root is searched with null windows."""
    return stack.root_beta - stack.root_alpha == 1


@kernel(boolean(Context, Stack, i64, i64))
def is_far(ctx, stack, score, bound):
    """Tell whether a null window is the first at this depth to show that the value is outside the aspiration window
    around the last value, which principal variation search would report."""
    hd = header_of(ctx)
    before = np.int64(hd.line_scores[stack.root_line])
    width = np.int64(hd.options.aspiration)
    if bound == BOUND_UPPER:
        return score <= before - width < stack.root_high
    return score >= before + width > stack.root_low


@kernel(boolean(Stack))
def has_proof(stack):
    """Tell whether null windows have proved a lower bound at this depth."""
    return proves(stack) and stack.root_low > -INFINITE


@kernel(i64(Stack))
def expected_type(stack):
    """Return the expected type of the root; with a null window by whether it will probably fail high."""
    if not proves(stack):
        return PV_NODE
    return ALL_NODE if has_proof(stack) else CUT_NODE


@kernel(void(Stack))
def _open_window(stack):
    stack.root_window = INFINITE
    stack.root_alpha = -INFINITE
    stack.root_beta = INFINITE


@kernel(void(Stack, i64))
def _ask(stack, value):
    """Set the next null window to ask whether the root is worth at least `value`; an unbounded one if that is a mate.
    Mate distance pruning below the root would return a bound beyond all mates as the value, again and again."""
    if is_mate_bound(value):
        _open_window(stack)
        return
    stack.root_alpha = value - 1
    stack.root_beta = value


@kernel(void(Context, i64, i64))
def set_window(ctx, stack_index, score):
    """Set the first window of an iteration. score: score of the iteration before.

    Without null windows it is around the score, or unbounded at low depth, near mate, or with aspiration off.
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
    """Return the kind of bound that a score of a search with this window is."""
    if score <= alpha:
        return BOUND_UPPER
    return BOUND_LOWER if score >= beta else BOUND_EXACT


@kernel(void(Stack, boolean))
def take_extent(stack, exhausted):
    """Record whether the root's value comes from searching the whole game: with null windows all searches of this depth
    must have done so, else the last one."""
    stack.root_whole = exhausted and (stack.root_whole != 0 or not proves(stack))


@kernel(boolean(Stack, i64, i64))
def _asks_again(stack, score, bound):
    """Update the root's bounds by a null window. Returns False if the value is known, else sets the next window."""
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
    """Tell whether a root must be searched again at this depth after this result; if so, set the next window."""
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
