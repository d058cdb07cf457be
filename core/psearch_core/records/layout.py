"""Sizes and the shape of a record: the ground of the layouts."""

from __future__ import annotations

from typing import Any

import numpy as np

MAX_PLY = 128
"""Frames on a stack; a search that gets this deep returns the static evaluation."""
MAX_MOVES = 256
"""More than the 218 moves of the richest position that a game can reach, and than the 244 that have been found for 16
pieces of any kind while the other king is not in check."""
MAX_HISTORY = 128
"""Positions of the game before the root that are kept for repetitions: more than the fifty-move rule needs."""
INFO_RING = 256
"""Iteration reports that may wait for the supervisor; more than it can fall behind between two looks."""
CACHE_LINE = 64
WORKER_BITS = 10
"""Of the number of a worker, where it stands below something else in a word."""
MAX_WORKERS = 1 << WORKER_BITS
CLAIM_SLOTS = 1 << 16
"""Most of the table of positions being searched, in groups of four: 64 a worker."""
PAWN_ENTRIES = 1024
"""Of the pawn hash of a worker, a power of two."""
NETWORK_FEATURES = 2 * 6 * 64
"""Inputs of the network: whose piece, which piece, which square."""
NETWORK_HIDDEN = 256
"""Its hidden units for each side."""
NETWORK_BUCKETS = 8
"""Its outputs, one for each four men more."""
ACCUMULATORS = 64
"""Sums that a worker keeps, a power of two: those of so many plies, one after the other."""
KPK_WORDS = 2 * 24 * 64
"""Side to move, square of the pawn (files a to d, ranks 2 to 7), square of its king: a bitboard of the other king."""


def record(fields: list[tuple[Any, ...]]) -> np.dtype[np.void]:
    """A C struct of these fields."""
    return np.dtype(fields, align=True)


def offset_of(dtype: np.dtype[np.void], name: str) -> int:
    """Where a field begins, in bytes."""
    fields = dtype.fields
    assert fields is not None
    return fields[name][1]
