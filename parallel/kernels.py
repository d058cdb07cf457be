"""Loads every compiled entry of the program."""

from __future__ import annotations

from psearch import prediction, processes, root, roundrobin, step, tracelog, uniform, virtual
from psearch.core import inspect, inspect_nodes, inspect_pruning, jit, perft, position, tables
from psearch.core.jit import Progress as Progress

_CORE = (inspect, inspect_nodes, inspect_pruning, perft, position, tables)
_MODULES = (*_CORE, prediction, processes, root, roundrobin, step, tracelog, uniform, virtual)


def load_kernels(progress: Progress | None = None) -> float:
    """Make all kernels callable; compiles on the first run, with one line at a time to `progress`.

    Returns the seconds it took.
    """
    return jit.build(progress)
