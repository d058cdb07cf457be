"""Loads every compiled entry of the program."""

from __future__ import annotations

from psearch.core import jit, tables
from psearch.core.board import perft, position
from psearch.core.inspect import node as inspect_nodes
from psearch.core.inspect import position as inspect
from psearch.core.inspect import pruning as inspect_pruning
from psearch.core.jit import Progress as Progress
from psearch.processes import worker as processes
from psearch.scheduler import prediction, root, step
from psearch.scheduler import trace_log as tracelog
from psearch.simulation import driver as virtual
from psearch.simulation import round_robin as roundrobin
from psearch.studies import uniform_tree as uniform

_CORE = (inspect, inspect_nodes, inspect_pruning, perft, position, tables)
_MODULES = (*_CORE, prediction, processes, root, roundrobin, step, tracelog, uniform, virtual)


def load_kernels(progress: Progress | None = None) -> float:
    """Make all kernels callable; compiles on the first run, with one line at a time to `progress`.

    Returns the seconds it took.
    """
    return jit.build(progress)
