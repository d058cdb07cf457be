"""Numba types of the records, and views of records at an address, for kernels.

Kernels must never *return* a record: numba would copy it whole.
"""

from __future__ import annotations

import numba
import numpy as np
from numba import types

from psearch_core import records
from psearch_core.toolchain.intrinsics import element_of, neighbour, racing_read, target_of, view

i32 = types.int32
i64 = types.int64
u64 = types.uint64
void = types.void
boolean = types.boolean


def _numba_record(dtype: np.dtype[np.void]) -> types.Record:
    record = numba.from_dtype(dtype)
    if not isinstance(record, types.Record):
        raise AssertionError(f"{dtype} is no record")
    return record


Position = _numba_record(records.position_dtype)
Tables = _numba_record(records.tables_dtype)
Accumulator = _numba_record(records.accumulator_dtype)
Node = _numba_record(records.node_dtype)
Visit = _numba_record(records.visit_dtype)
Frame = _numba_record(records.frame_dtype)
Stack = _numba_record(records.stack_dtype)
PawnEntry = _numba_record(records.pawn_entry_dtype)
Evaluation = _numba_record(records.evaluation_dtype)
Worker = _numba_record(records.worker_dtype)
PruningRecord = _numba_record(records.pruning_dtype)
Options = _numba_record(records.options_dtype)
Info = _numba_record(records.info_dtype)
Prediction = _numba_record(records.prediction_dtype)
Learning = _numba_record(records.learning_dtype)
Header = _numba_record(records.header_dtype)
Context = _numba_record(records.context_dtype)
Counters = _numba_record(records.counters_dtype)
Simulation = _numba_record(records.simulation_dtype)
Costs = _numba_record(records.costs_dtype)
Lock = _numba_record(records.lock_dtype)
TraceEvent = _numba_record(records.trace_event_dtype)
TraceLog = _numba_record(records.trace_log_dtype)

position_at = view(Position)
tables_at = view(Tables)
accumulator_at = view(Accumulator)
frame_at = view(Frame)
evaluation_at = view(Evaluation)
worker_at = view(Worker)
learning_at = view(Learning)
pruning_at = view(PruningRecord)
context_at = view(Context)
simulation_at = view(Simulation)
lock_at = view(Lock)
trace_event_at = view(TraceEvent)
trace_log_at = view(TraceLog)

# Fields of an open node that may be read without its lock, while the holder of the lock may be writing them
racing_alpha = racing_read(Node, "alpha")
racing_tt_move = racing_read(Node, "tt_move")
racing_killer_1 = racing_read(Node, "killer_1")
racing_killer_2 = racing_read(Node, "killer_2")
racing_priority = racing_read(Node, "priority")

# Records of a context: by number, or the only one of their type
frame_of = element_of(Context, "frames", Frame)
"""Intrinsic that gives a frame by its number, stack * MAX_PLY + ply."""
stack_of = element_of(Context, "stacks", Stack)
worker_of = element_of(Context, "workers", Worker)
header_of = target_of(Context, "header", Header)
tables_of = target_of(Context, "tables", Tables)

above = neighbour(Frame, 1)
"""Intrinsic that gives the frame of the next ply on the same stack."""
below = neighbour(Frame, -1)
