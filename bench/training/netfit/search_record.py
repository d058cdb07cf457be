"""The memory in which a search finds its net, and the groups of kernels that evaluate by it."""

from __future__ import annotations

import numpy as np

from netfit.network import BUCKETS, FEATURES, Net
from psearch.core.toolchain.groups import Group
from psearch.scheduler.scheduler_entries import SEARCH

MOST_HIDDEN = 256
ROW_ONE, OUT_ONE = 255, 64
"""What stands for 1.0 in rows and outputs."""

net_dtype = np.dtype(
    [
        ("hidden", "i8"),
        ("rows", "i2", (FEATURES * MOST_HIDDEN,)),  # hidden at a time
        ("bias", "i2", (MOST_HIDDEN,)),
        ("out", "i2", (BUCKETS * 2 * MOST_HIDDEN,)),  # 2 * hidden at a time
        ("out_bias", "i8", (BUCKETS,)),  # ROW_ONE ** 2 * OUT_ONE is one natural unit
        ("first", "i8", (MOST_HIDDEN,)),  # scratch: sums of the mover's side
        ("second", "i8", (MOST_HIDDEN,)),
    ],
    align=True,
)

SEARCH_BY_NET = Group(
    "search_by_net",
    *SEARCH.modules,
    replaced={"psearch.core.chess.evaluation.evaluate.evaluate": "netfit.search_kernels.evaluate_by_net"},
)
begin_search = SEARCH_BY_NET.entry("begin_search")
work = SEARCH_BY_NET.entry("work")


def search_record(net: Net) -> np.ndarray:
    """Return a net in integers, one `net_dtype` record. Raises ValueError when it is too wide."""
    hidden = net.hidden
    if hidden > MOST_HIDDEN:
        raise ValueError(f"a net of {hidden} hidden units; {MOST_HIDDEN} are the most that games are played with")
    record = np.zeros(1, net_dtype)
    record["hidden"] = hidden
    record["rows"][0, : FEATURES * hidden] = np.rint(net.rows * ROW_ONE).ravel()
    record["bias"][0, :hidden] = np.rint(net.bias * ROW_ONE)
    record["out"][0, : BUCKETS * 2 * hidden] = np.rint(net.out * OUT_ONE).ravel()
    record["out_bias"] = np.rint(net.out_bias * ROW_ONE**2 * OUT_ONE)
    return record
