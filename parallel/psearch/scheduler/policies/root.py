"""Only the root is opened, once its first move is done."""

from __future__ import annotations

from psearch_core.toolchain.jit import kernel
from psearch_core.views import Context, Node, boolean, i64


@kernel(boolean(Context, Node, i64))
def may_open(ctx, node, ply):
    """See `psearch.scheduler.policy.may_open`."""
    return ply == 0 and node.moves_done >= 1
