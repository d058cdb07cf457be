"""The layout of everything in memory: every field with its unit and its writer.

Records are C structs; Python accesses them through numpy, kernels by address through `psearch_core.views`. The owner of
a frame is the worker that runs the frame's stack; the fields of an open node belong to the holder of its lock. A frame
is identified by its number, stack * MAX_PLY + ply.

All names can be imported from here. `layout` has the sizes, `chess` position, tables and evaluation, `node_record`
stacks and nodes, `worker_record` workers, `header` what all workers share, `pruning_record` parameters and modes of
selective search, `simulation` virtual time.
"""

# ruff: noqa: F403 (the names are the records that each module declares)
from psearch_core.records.chess import *
from psearch_core.records.header import *
from psearch_core.records.layout import *
from psearch_core.records.node_record import *
from psearch_core.records.pruning_record import *
from psearch_core.records.simulation import *
from psearch_core.records.worker_record import *
