"""What Python calls of the driver in virtual time, in machine code; numba is not needed for it."""

from __future__ import annotations

from psearch_core.toolchain.groups import Group

VIRTUAL = Group(
    "virtual",
    "psearch.scheduler.iterations",
    "psearch.simulation.virtual_driver",
    replaced={"psearch.scheduler.splitting.is_held": "psearch.simulation.virtual_driver.is_held_by_clock"},
)
"""Its entries are called by `Simulator`, which may be given a group with other kernels in their places."""
