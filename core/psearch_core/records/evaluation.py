"""What evaluating a position needs beside the tables."""

from __future__ import annotations

from psearch_core.records.layout import PAWN_ENTRIES, record
from psearch_core.records.network_record import network_scratch_dtype

pawn_entry_dtype = record(
    [
        ("key", "u8"),  # `pawn_key` of the position
        ("passed", "u8"),  # passed pawns of both sides
        ("spans", "u8", (2,)),  # squares that pawns of a side attack, or may after advancing
        ("score", "i8"),  # pawn and shelter terms, White minus Black, as a pair
        ("units", "i4", (2,)),  # danger to the king of a side from its shelter
        ("pad", "u1", (16,)),  # to a cache line
    ]
)

evaluation_dtype = record(
    [
        # scratch: attack maps of the position being evaluated, by side
        ("by_piece", "u8", (2, 6)),
        ("attacked", "u8", (2,)),
        ("twice", "u8", (2,)),
        ("mobility_area", "u8", (2,)),
        ("ring", "u8", (2,)),  # squares around the king
        ("units", "i8", (2,)),  # danger to the king of the other side
        ("queen_diagonal", "u8", (2,)),  # the bishop's half of what the last queen attacks; stale without a queen
        ("queen_straight", "u8", (2,)),
        ("pad", "u1", (48,)),  # to a cache line
        ("network", network_scratch_dtype),
        ("pawns", pawn_entry_dtype, (PAWN_ENTRIES,)),  # private to a worker: no races, and the same on every run
    ]
)
