"""One tree for all rules: nodes open as under `kannan`, whatever types the policy expects.

Types have no influence on what one worker searches, but on which nodes several workers share, and so on the tree that
they search together. Every node has its type by Kannan's rule, too (`kannan_type`, for reductions). Where nodes open by
that one, all rules are asked about the same nodes.
"""

from __future__ import annotations

import numpy as np

from psearch.scheduler.policies import opens_as
from psearch_core.constants import ALL_NODE
from psearch_core.toolchain.jit import kernel
from psearch_core.views import Context, Node, boolean, i64


@kernel(boolean(Context, Node, i64))
def may_open_as_kannan(ctx, node, ply):
    """Stand in for `may_open`."""
    return opens_as(node, np.int64(node.kannan_type))


@kernel(i64(Context, Node))
def priority_as_kannan(ctx, node):
    """Stand in for `open_priority`."""
    return 2 * node.depth + (1 if node.kannan_type == ALL_NODE else 0)
