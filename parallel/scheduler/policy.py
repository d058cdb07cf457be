"""When a node is opened to helpers, and how much an open node is worth.

Every policy runs in the same machine with everything else equal; they differ in how types are predicted
(`node_types.py`), in the moment a node opens, and in the priority of an open node.

Locks: `may_open` looks at a node that only its owner can reach yet; `open_priority` at an open one, under its lock.
"""

from __future__ import annotations

import numpy as np

from psearch.core.chess.ordering.movepick import PICK_QUIETS
from psearch.core.constants import ALL_NODE, CUT_NODE, PV_NODE
from psearch.core.records import CERTAIN, DEPTHS
from psearch.core.toolchain.jit import entry, kernel
from psearch.core.views import Context, Node, boolean, context_at, header_of, i64, void
from psearch.defaults import POLICY_NAMES
from psearch.scheduler.prediction import expected_gain, finished_moves, join_cost, merge_outcomes, p_next_move_needed
from psearch.scheduler.scheduler_entries import PREDICTION
from psearch.scheduler.words import idle_workers

POLICY_SERIAL = POLICY_NAMES.index("serial")
POLICY_ROOT = POLICY_NAMES.index("root")
POLICY_YBW = POLICY_NAMES.index("ybw")
POLICY_KNUTH = POLICY_NAMES.index("knuth")
POLICY_KANNAN = POLICY_NAMES.index("kannan")
POLICY_FELTEN = POLICY_NAMES.index("felten")
POLICY_CALIBRATED = POLICY_NAMES.index("calibrated")
POLICY_LAZY = POLICY_NAMES.index("lazy")
POLICY_ABDADA = POLICY_NAMES.index("abdada")
"""Numbers of the policies that a rule names; garms needs none, it does what is said last everywhere.

serial: nothing is opened. root: only the root, after its first move. ybw: any node once its first move is done.
knuth, garms, kannan: predicted ALL nodes on entry, PV nodes once their first move is done; kannan also CUT nodes whose
candidate cutoff moves are exhausted. felten: kannan, but a table bound overrides the type. calibrated: PV nodes
likewise, any other node whose next move is probably needed and big enough. lazy, abdada: nothing is opened, every
worker searches the whole tree.
"""

GAIN_BUSY = 64
"""calibrated, while all are busy: the expected gain, in joins, from which a node opens. A worker that is already idle
has nothing better to do than to join, so while there is one no gain is too small."""
_UNPROVED_SHIFT = 4
"""calibrated: a node none of whose moves is finished is offered for 1/16 of its gain. Its first move may still cut,
and its successors search blind to each other's refutations: a reserve for helpers that find nothing else."""
_MAX_PRIORITY = (1 << 30) - 1


@kernel(boolean(i64))
def splits_nothing(policy):
    """Tell whether with this policy every worker searches a root of its own."""
    return policy in (POLICY_LAZY, POLICY_ABDADA)


@kernel(i64(Context))
def opening_policy(ctx):
    """Return the policy that says when nodes open. A study puts another one here, to open alike whatever is
    predicted."""
    return np.int64(header_of(ctx).options.policy)


@kernel(i64(Node))
def opening_type(node):
    """Return the expected type that it goes by."""
    return np.int64(node.split_type)


@kernel(boolean(Context, Node))
def _is_worth_opening(ctx, node):
    """calibrated: probably needed and worth some joins; while a worker is idle, only the former, and less of it."""
    hd = header_of(ctx)
    if idle_workers(ctx) > 0:
        return p_next_move_needed(ctx, node) * 100 >= hd.options.open_idle * CERTAIN
    if node.depth < hd.prediction.least_depth:
        return False  # so it is with most nodes, and this costs least to see
    if p_next_move_needed(ctx, node) * 100 < hd.options.open_busy * CERTAIN:
        return False
    return expected_gain(ctx, node) >= GAIN_BUSY * join_cost(ctx)


@kernel(boolean(Context, Node, i64))
def may_open(ctx, node, ply):
    """Tell whether a node that is not open opens before its next move is taken."""
    options = header_of(ctx).options
    policy, expected = opening_policy(ctx), opening_type(node)
    if policy == POLICY_SERIAL or splits_nothing(policy) or node.depth < options.split_depth:
        return False
    if options.wait and node.moves_done == 0:
        return False
    if policy == POLICY_ROOT:
        return ply == 0 and node.moves_done >= 1
    if policy == POLICY_YBW or expected == PV_NODE:
        return node.moves_done >= 1
    if policy == POLICY_CALIBRATED:
        return _is_worth_opening(ctx, node)
    if expected == ALL_NODE:
        return True
    if policy in (POLICY_KANNAN, POLICY_FELTEN):
        return expected == CUT_NODE and node.moves_done >= 1 and node.stage >= PICK_QUIETS
    return False


@kernel(i64(Context, Node))
def open_priority(ctx, node):
    """Return what a helper looks for, bigger is better; at least 1. Under the node's lock.

    Calibrated: the useful nodes to expect, less while no move is finished. Else bigger subtrees first, they keep a
    helper busy for longer, and among equals ALL nodes, where no cutoff threatens.
    """
    if opening_policy(ctx) == POLICY_CALIBRATED:
        gain = expected_gain(ctx, node)
        if finished_moves(node) == 0:
            gain >>= _UNPROVED_SHIFT
        return min(max(gain, np.int64(1)), _MAX_PRIORITY)
    return 2 * node.depth + (1 if opening_type(node) == ALL_NODE else 0)


@kernel(void(Context))
def _find_least_depth(ctx):
    """The least depth at which a move is big enough for `GAIN_BUSY` joins if it is needed for certain."""
    prediction = header_of(ctx).prediction
    depth = np.int64(1)
    while depth < DEPTHS and prediction.size[depth - 1] < GAIN_BUSY * join_cost(ctx):
        depth += 1
    prediction.least_depth = depth


@kernel(void(Context))
def update_prediction(ctx):
    """Bring the predictions, and what is computed from them in advance, up to date. Only while no worker searches."""
    merge_outcomes(ctx)
    _find_least_depth(ctx)


@entry(void(i64), PREDICTION)
def merge_now(context):
    """Call `update_prediction` for Python, after a search."""
    update_prediction(context_at(context))
