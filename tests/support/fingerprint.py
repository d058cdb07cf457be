"""What `psearch bench` counts: the fingerprint of the search."""

from __future__ import annotations

BENCH_NODES = 3_177_529
"""A commit that changes this number changes the search; it says so as `Bench: N`."""
