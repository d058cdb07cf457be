"""What `psearch bench` counts: the fingerprint of the search."""

from __future__ import annotations

BENCH_NODES = 2_925_175
"""A commit that changes this number changes the search; it says so as `Bench: N`."""
