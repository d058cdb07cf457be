"""Decisions of a policy: which nodes are opened to helpers, when, and with what priority.

Every policy runs in the same state machine. Policies differ only in the kernels marked `hook` here: expected types of
nodes, when a node opens, the priority of an open node, whether work is split at all. For the package's policies each
hook reads the option `policy` and calls the kernel of that policy (`policies.py`), by default that of `garms`. A policy
in a user's file replaces some of the hooks (`psearch.own_policy`).

A node has two types: `split_type`, by the policy, decides when it opens; `kannan_type`, by Kannan's rule under every
policy, steers reductions, so that all policies search the same tree. Both are set before a node is entered and only
read while it is open.

Locks: `may_open` reads a node that only its owner can reach yet; `open_priority` reads an open node under its lock.
"""

import numpy as np

from psearch.defaults import MAX_DEPTH, POLICY_NAMES
from psearch.scheduler.policies import (
    calibrated_may_open,
    calibrated_priority,
    felten_type,
    garms_child_type,
    garms_may_open,
    garms_priority,
    kannan_child_type,
    kannan_null_child_type,
    knuth_child_type,
    opens_as,
)
from psearch.scheduler.prediction import merge_outcomes
from psearch.scheduler.scheduler_entries import PREDICTION
from psearch_core.constants import ALL_NODE, CUT_NODE, PV_NODE
from psearch_core.toolchain.jit import entry, hook, kernel, limit_answers
from psearch_core.views import Context, Node, boolean, context_at, header_of, i64, void

POLICY_SERIAL = POLICY_NAMES.index("serial")
POLICY_ROOT = POLICY_NAMES.index("root")
POLICY_YBW = POLICY_NAMES.index("ybw")
POLICY_KNUTH = POLICY_NAMES.index("knuth")
POLICY_KANNAN = POLICY_NAMES.index("kannan")
POLICY_FELTEN = POLICY_NAMES.index("felten")
POLICY_CALIBRATED = POLICY_NAMES.index("calibrated")
POLICY_LAZY = POLICY_NAMES.index("lazy")
POLICY_ABDADA = POLICY_NAMES.index("abdada")
"""Number of a policy, as for all names above; garms is the default and needs none."""
_ABDADA_CLAIM_DEPTH = 3
_LARGEST_BLOCK = 4
"""Greatest number of consecutive depths that a root skips."""


@kernel(i64(Context))
def _policy(ctx):
    return np.int64(header_of(ctx).options.policy)


# -- whether work is split ------------------------------------------------------------------------------------------


@hook(boolean(Context))
def splits_nothing(ctx):
    """Tell whether every worker searches a separate root; then no node is opened."""
    return _policy(ctx) in (POLICY_LAZY, POLICY_ABDADA)


@kernel(boolean(i64, i64))
def leaves_out(root, depth):
    """Tell whether a root skips a depth, so that roots are at different depths: all but the first skip blocks of 1, 2,
    3 .. depths, in all phases.

    Stockfish has dropped this (2019). Here roots that search every depth lose 102 +- 108 Elo (8 workers of Lazy SMP,
    20,000 nodes for each move), since all workers share the histories and would search the same tree.
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


@hook(boolean(Context, i64, i64))
def skips_depth(ctx, root, depth):
    """Tell whether a root skips this depth."""
    return _policy(ctx) != POLICY_ABDADA and leaves_out(root, depth)


@hook(i64(Context))
def claim_depth(ctx):
    """Return the least depth of a child at which its position is claimed, and its move deferred while another worker
    searches it; 0: never. Called once for each search."""
    hd = header_of(ctx)
    policy = _policy(ctx)
    if hd.worker_count == 1 or policy in (POLICY_SERIAL, POLICY_LAZY):
        return 0  # there is no other worker, or the policy uses no claims
    if hd.options.defer_depth < 0:
        return _ABDADA_CLAIM_DEPTH if policy == POLICY_ABDADA else 0
    return np.int64(hd.options.defer_depth)


# -- expected types of nodes ----------------------------------------------------------------------------------------


@kernel(boolean(i64))
def _follows_kannan(policy):
    """Tell whether a policy has Kannan's types; felten and calibrated refine them."""
    return policy in (POLICY_KANNAN, POLICY_FELTEN, POLICY_CALIBRATED)


@kernel(i64(i64, i64, i64, i64, i64))
def child_type_by(policy, parent, index, picked, stage):
    """Return the type of the child reached by move number `index` (from 0) of a node of type `parent`. picked: stage of
    the move picker that gave the move; stage: window of the child's search."""
    if _follows_kannan(policy):
        return kannan_child_type(parent, index, picked, stage)
    if policy == POLICY_KNUTH:
        return knuth_child_type(parent, stage)
    return garms_child_type(parent, index, stage)


@hook(i64(Context, Node, i64, i64, i64))
def child_type(ctx, node, index, picked, stage):
    """Return the type of the child reached by move number `index` (from 0) of this node: `PV_NODE`, `CUT_NODE` or
    `ALL_NODE`. picked: stage of the move picker that gave the move; stage: window of the child's search."""
    return child_type_by(_policy(ctx), np.int64(node.split_type), index, picked, stage)


@hook(i64(Context, Node))
def null_child_type(ctx, node):
    """Return the type of the child after a null move at this node."""
    if _follows_kannan(_policy(ctx)):
        return kannan_null_child_type(np.int64(node.split_type))
    return np.int64(CUT_NODE)


@hook(i64(Context, Node))
def refined_type(ctx, node):
    """Return the type of a node once the table has been probed."""
    return felten_type(node) if _policy(ctx) == POLICY_FELTEN else np.int64(node.split_type)


# -- when a node opens, and with what priority ----------------------------------------------------------------------


@hook(boolean(Context, Node, i64))
def may_open(ctx, node, ply):
    """Tell whether a node that is not open opens before its next move is taken."""
    policy = _policy(ctx)
    if policy == POLICY_CALIBRATED:
        return calibrated_may_open(ctx, node)
    if policy == POLICY_SERIAL:
        return False
    if policy in (POLICY_ROOT, POLICY_YBW):
        return node.moves_done >= 1 and (policy == POLICY_YBW or ply == 0)
    if policy in (POLICY_KANNAN, POLICY_FELTEN):
        return opens_as(node, np.int64(node.split_type))
    return garms_may_open(node)


@kernel(boolean(Context, Node, i64))
def opens(ctx, node, ply):
    """Tell whether a node opens before its next move is taken, by the options and the policy."""
    options = header_of(ctx).options
    if node.depth < options.split_depth or (options.wait and node.moves_done == 0):
        return False
    return not splits_nothing(ctx) and may_open(ctx, node, ply)


@hook(i64(Context, Node))
def open_priority(ctx, node):
    """Return the priority of an open node, at least 1; helpers join the greatest. Called under the node's lock."""
    if _policy(ctx) == POLICY_CALIBRATED:
        return calibrated_priority(ctx, node)
    return garms_priority(node)


# -- predictions ----------------------------------------------------------------------------------------------------


@entry(void(i64), PREDICTION)
def merge_now(context):
    """Update the predictions after a search, for Python."""
    merge_outcomes(context_at(context))


# set in the module of the hooks, so that a user's file cannot import a hook without its limits
limit_answers(1, 2**31 - 1, open_priority)
limit_answers(PV_NODE, ALL_NODE, child_type, null_child_type, refined_type)
limit_answers(0, MAX_DEPTH, claim_depth)
