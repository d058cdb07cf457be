"""Sizes of the records, and the function that makes their types."""

from __future__ import annotations

from typing import Any

import numpy as np

MAX_PLY = 128
"""Number of frames on a stack. A search that gets this deep returns the static evaluation."""
MAX_MOVES = 256
"""Greatest number of moves in a position. No position that a game can reach has more than 218; with 16 pieces of any
kind and the other king not in check, 244 have been found."""
MAX_HISTORY = 128
"""Number of positions before the root that are kept for repetitions: more than the fifty-move rule needs."""
INFO_RING = 256
"""Number of reports that may wait for the supervisor; more than workers can write between two of its looks."""
CACHE_LINE = 64
WORKER_BITS = 10
"""Number of bits of a worker's number in words that also hold something else."""
MAX_WORKERS = 1 << WORKER_BITS
CLAIM_SLOTS = 1 << 16
"""Greatest number of slots in the table of positions being searched: 64 for each worker, in groups of four."""
PAWN_ENTRIES = 1024
"""Number of entries of a worker's pawn hash, a power of two."""
NETWORK_FEATURES = 2 * 6 * 64
"""Number of inputs of the network: whose piece, type of piece, square."""
NETWORK_HIDDEN = 256
"""Number of hidden units of the network for each side."""
NETWORK_BUCKETS = 8
"""Number of outputs of the network; the number of men, in steps of four, selects one."""
ACCUMULATORS = 64
"""Number of accumulators of a worker, a power of two: those of consecutive plies."""
KPK_WORDS = 2 * 24 * 64
"""Words of the table of king and pawn against king: a bitboard of squares of the other king for each side to move,
square of the pawn (files a to d, ranks 2 to 7) and square of its king."""


def record(fields: list[tuple[Any, ...]]) -> np.dtype[np.void]:
    """Return the type of a C struct with these fields."""
    return np.dtype(fields, align=True)


def offset_of(dtype: np.dtype[np.void], name: str) -> int:
    """Return the offset of a field, in bytes."""
    fields = dtype.fields
    assert fields is not None
    return fields[name][1]
