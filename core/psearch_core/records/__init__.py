"""The layout of everything in memory: every field with its unit and its writer.

Records are C structs; Python sees them through numpy, kernels through `psearch_core.views` at an address. "Owner" of a
frame means the worker that runs the stack the frame is on; for a frame whose node is open, the fields of the node
belong to whoever holds its lock. A frame is known by its number, stack * MAX_PLY +
ply. One file a subject; all names can be had from here.
"""

from __future__ import annotations

from psearch_core.records.chess import position_dtype as position_dtype
from psearch_core.records.chess import tables_dtype as tables_dtype
from psearch_core.records.evaluation import evaluation_dtype as evaluation_dtype
from psearch_core.records.evaluation import pawn_entry_dtype as pawn_entry_dtype
from psearch_core.records.header import context_dtype as context_dtype
from psearch_core.records.header import header_dtype as header_dtype
from psearch_core.records.header import options_dtype as options_dtype
from psearch_core.records.info import info_dtype as info_dtype
from psearch_core.records.layout import ACCUMULATORS as ACCUMULATORS
from psearch_core.records.layout import CACHE_LINE as CACHE_LINE
from psearch_core.records.layout import CLAIM_SLOTS as CLAIM_SLOTS
from psearch_core.records.layout import INFO_RING as INFO_RING
from psearch_core.records.layout import KPK_WORDS as KPK_WORDS
from psearch_core.records.layout import MAX_HISTORY as MAX_HISTORY
from psearch_core.records.layout import MAX_MOVES as MAX_MOVES
from psearch_core.records.layout import MAX_PLY as MAX_PLY
from psearch_core.records.layout import MAX_WORKERS as MAX_WORKERS
from psearch_core.records.layout import NETWORK_BUCKETS as NETWORK_BUCKETS
from psearch_core.records.layout import NETWORK_FEATURES as NETWORK_FEATURES
from psearch_core.records.layout import NETWORK_HIDDEN as NETWORK_HIDDEN
from psearch_core.records.layout import PAWN_ENTRIES as PAWN_ENTRIES
from psearch_core.records.layout import WORKER_BITS as WORKER_BITS
from psearch_core.records.layout import offset_of as offset_of
from psearch_core.records.learning import MOVED as MOVED
from psearch_core.records.learning import learning_dtype as learning_dtype
from psearch_core.records.network_record import OUT_ONE as OUT_ONE
from psearch_core.records.network_record import ROW_ONE as ROW_ONE
from psearch_core.records.network_record import accumulator_dtype as accumulator_dtype
from psearch_core.records.network_record import network_dtype as network_dtype
from psearch_core.records.node_record import frame_dtype as frame_dtype
from psearch_core.records.node_record import frame_trace_dtype as frame_trace_dtype
from psearch_core.records.node_record import node_dtype as node_dtype
from psearch_core.records.node_record import visit_dtype as visit_dtype
from psearch_core.records.prediction_record import BINS as BINS
from psearch_core.records.prediction_record import BOUNDS as BOUNDS
from psearch_core.records.prediction_record import CERTAIN as CERTAIN
from psearch_core.records.prediction_record import DEPTHS as DEPTHS
from psearch_core.records.prediction_record import PROGRESS as PROGRESS
from psearch_core.records.prediction_record import TYPES as TYPES
from psearch_core.records.prediction_record import outcomes_dtype as outcomes_dtype
from psearch_core.records.prediction_record import prediction_dtype as prediction_dtype
from psearch_core.records.pruning_record import PLY as PLY
from psearch_core.records.pruning_record import PLY_SHIFT as PLY_SHIFT
from psearch_core.records.pruning_record import REDUCTIONS as REDUCTIONS
from psearch_core.records.pruning_record import SOUND_BOOKKEEPING as SOUND_BOOKKEEPING
from psearch_core.records.pruning_record import SOUND_BOUND as SOUND_BOUND
from psearch_core.records.pruning_record import SOUND_CASTLING as SOUND_CASTLING
from psearch_core.records.pruning_record import SOUND_CHECKS as SOUND_CHECKS
from psearch_core.records.pruning_record import SOUND_EN_PASSANT as SOUND_EN_PASSANT
from psearch_core.records.pruning_record import SOUND_FIFTY_MOVES as SOUND_FIFTY_MOVES
from psearch_core.records.pruning_record import SOUND_FRONTIER as SOUND_FRONTIER
from psearch_core.records.pruning_record import SOUND_GATES as SOUND_GATES
from psearch_core.records.pruning_record import SOUND_LEGALITY as SOUND_LEGALITY
from psearch_core.records.pruning_record import SOUND_MATERIAL as SOUND_MATERIAL
from psearch_core.records.pruning_record import SOUND_PHASE as SOUND_PHASE
from psearch_core.records.pruning_record import SOUND_PROMOTION as SOUND_PROMOTION
from psearch_core.records.pruning_record import SOUND_RAW as SOUND_RAW
from psearch_core.records.pruning_record import SOUND_REPETITION as SOUND_REPETITION
from psearch_core.records.pruning_record import SOUND_SCALING as SOUND_SCALING
from psearch_core.records.pruning_record import pruning_dtype as pruning_dtype
from psearch_core.records.simulation import COLD_NODES as COLD_NODES
from psearch_core.records.simulation import costs_dtype as costs_dtype
from psearch_core.records.simulation import lock_dtype as lock_dtype
from psearch_core.records.simulation import simulation_dtype as simulation_dtype
from psearch_core.records.stack import path_dtype as path_dtype
from psearch_core.records.stack import stack_dtype as stack_dtype
from psearch_core.records.trace import ROOT_STOPPED as ROOT_STOPPED
from psearch_core.records.trace import TRACE_ABORT as TRACE_ABORT
from psearch_core.records.trace import TRACE_IDLE as TRACE_IDLE
from psearch_core.records.trace import TRACE_JOIN as TRACE_JOIN
from psearch_core.records.trace import TRACE_ROOT as TRACE_ROOT
from psearch_core.records.trace import TRACE_SPLIT as TRACE_SPLIT
from psearch_core.records.trace import TRACE_TAKE as TRACE_TAKE
from psearch_core.records.trace import trace_event_dtype as trace_event_dtype
from psearch_core.records.trace import trace_log_dtype as trace_log_dtype
from psearch_core.records.worker_record import OWN_RULE as OWN_RULE
from psearch_core.records.worker_record import TECHNIQUE_ROOM as TECHNIQUE_ROOM
from psearch_core.records.worker_record import counters_dtype as counters_dtype
from psearch_core.records.worker_record import worker_dtype as worker_dtype

FRAME_SIZE = frame_dtype.itemsize
STACK_SIZE = stack_dtype.itemsize
WORKER_SIZE = worker_dtype.itemsize
TRACE_EVENT_SIZE = trace_event_dtype.itemsize
TRACE_LOG_SIZE = trace_log_dtype.itemsize

if FRAME_SIZE % (2 * CACHE_LINE) != CACHE_LINE or STACK_SIZE % CACHE_LINE or WORKER_SIZE % CACHE_LINE:
    raise AssertionError(f"record sizes: frame {FRAME_SIZE}, stack {STACK_SIZE}, worker {WORKER_SIZE}")
if offset_of(worker_dtype, "outcomes") % CACHE_LINE or offset_of(outcomes_dtype, "ended"):
    raise AssertionError("the counts of a class lie in two cache lines")
if TRACE_EVENT_SIZE != CACHE_LINE or TRACE_LOG_SIZE != CACHE_LINE:
    raise AssertionError(f"record sizes: trace event {TRACE_EVENT_SIZE}, trace log {TRACE_LOG_SIZE}")
