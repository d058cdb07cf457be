"""One tree for all rules: nodes open as under `kannan`, whatever types the policy expects.

Types have no influence on what one worker searches, but on which nodes several workers share, and so on the tree that
they search together. Every node has its type by Kannan's rule, too (`kannan_type`, for reductions). Where nodes open by
that one, all rules are asked about the same nodes.
"""

from __future__ import annotations

import numpy as np

from psearch.core.toolchain.jit import kernel
from psearch.core.views import Context, Node, i64
from psearch.scheduler.policy import POLICY_KANNAN


@kernel(i64(Context))
def kannan_policy(ctx):
    """Stand in for `opening_policy`."""
    return np.int64(POLICY_KANNAN)


@kernel(i64(Node))
def kannan_type(node):
    """Stand in for `opening_type`."""
    return np.int64(node.kannan_type)
