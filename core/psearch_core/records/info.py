"""What a search of a root has shown."""

from __future__ import annotations

from psearch_core.records.layout import MAX_PLY, record

info_dtype = record(
    [
        ("nodes", "i8"),
        ("depth", "i4"),
        ("seldepth", "i4"),
        ("score", "i4"),
        ("bound", "i4"),  # BOUND_EXACT, BOUND_LOWER, BOUND_UPPER
        ("pv_length", "i4"),
        ("line", "i4"),  # MultiPV: 0 for the best line, 1 for the one without its move, and so on
        ("pv", "i4", (MAX_PLY,)),
    ]
)
