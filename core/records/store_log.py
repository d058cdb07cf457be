"""What a worker has stored lately, for other machines."""

from __future__ import annotations

from psearch.core.records.layout import record

STORE_LOG_ENTRIES = 1 << 12
"""A power of two: more than a worker stores in the time between two looks."""
NEVER_LOGGED = 256
"""As `logged_depth`: deeper than any result."""

store_log_dtype = record(
    [
        # one for each worker, and written by that worker
        ("count", "i8"),  # atomic; entries logged so far: an entry is complete once it is counted
        ("pad", "i8", (7,)),
        # a ring, in which the n-th entry is at n % STORE_LOG_ENTRIES; both words as in the table
        ("entries", "u8", (STORE_LOG_ENTRIES, 2)),
    ]
)
