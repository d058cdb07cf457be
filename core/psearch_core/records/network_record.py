"""The network that evaluates, and the sums of its hidden units that a worker keeps."""

from __future__ import annotations

import numpy as np

from psearch_core.records.layout import ACCUMULATORS, NETWORK_BUCKETS, NETWORK_FEATURES, NETWORK_HIDDEN, record

ROW_ONE = 255
"""Stands for 1.0 in a row, and in the sum that a hidden unit is cut off at."""
OUT_ONE = 64
"""Stands for 1.0 in an output weight."""

network_dtype = record(
    [
        ("rows", "i2", (NETWORK_FEATURES, NETWORK_HIDDEN)),  # by input: whose piece, which, on which square; 1/ROW_ONE
        ("bias", "i2", (NETWORK_HIDDEN,)),  # 1/ROW_ONE
        ("out", "i2", (NETWORK_BUCKETS, 2, NETWORK_HIDDEN)),  # by number of men; the mover's units first; 1/OUT_ONE
        ("out_bias", "i4", (NETWORK_BUCKETS,)),  # 1 / (ROW_ONE * ROW_ONE * OUT_ONE)
        ("unit", "i4"),  # centipawns of one natural unit, whose expected score is 1 / (1 + exp(-1))
        ("pad", "u1", (28,)),  # to a cache line
    ]
)

accumulator_dtype = record(
    [
        ("board", "u1", (64,)),  # the position that the sums are of, as `position_dtype` has it
        ("sums", "i2", (2, NETWORK_HIDDEN)),  # of the hidden units, bias included, from White's side and from Black's
        ("views", "i8", (2,)),  # how each side sees the board, `_view`; 0 nothing has been summed up
        ("pad", "u1", (48,)),  # to a cache line
    ]
)

network_scratch_dtype = record(
    [
        ("accumulators", accumulator_dtype, (ACCUMULATORS,)),  # by ply
        ("added", "i8", (64,)),  # addresses of rows: to be added, and to be taken off
        ("removed", "i8", (64,)),
    ]
)

if network_dtype.itemsize % 64 or accumulator_dtype.itemsize % 64:
    raise AssertionError(f"sizes: network {network_dtype.itemsize}, accumulator {accumulator_dtype.itemsize}")
if np.iinfo(np.int16).max < ROW_ONE * 2 * OUT_ONE:
    raise AssertionError("an output weight times a unit does not fit into 16 bits")
