"""Compiled entries of the driver in virtual time, which Python calls without numba."""

from psearch_core.toolchain.groups import Group

VIRTUAL = Group(
    "virtual",
    "psearch.scheduler.iterations",
    "psearch.simulation.virtual_driver",
    replaced={"psearch.scheduler.splitting.is_held": "psearch.simulation.virtual_driver.is_held_by_clock"},
)
"""Group of kernels for `Simulator`, which also accepts a group in which some of them are replaced."""
