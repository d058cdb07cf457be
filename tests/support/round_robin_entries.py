"""The group of `round_robin`, and its entries."""

from __future__ import annotations

from psearch_core.toolchain.groups import Group

ROUND_ROBIN = Group("round_robin", "round_robin")
run_interleaved = ROUND_ROBIN.entry("run_interleaved")
step_worker = ROUND_ROBIN.entry("step_worker")
