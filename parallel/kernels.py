"""Loads every compiled entry of the program."""

from __future__ import annotations

from psearch.core import inspect, jit, perft, position, tables
from psearch.core.jit import Progress

from psearch import processes, root, roundrobin, step

_MODULES = (inspect, perft, position, tables, processes, root, roundrobin, step)


def load_kernels(progress: Progress | None = None) -> float:
    """Make all kernels callable; compiles on the first run, with one line at a time to `progress`.

    Returns the seconds it took.
    """
    return jit.build(progress)
