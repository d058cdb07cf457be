"""The layout of everything in memory: every field with its unit and its writer.

Records are C structs; Python sees them through numpy, kernels through `psearch_core.views` at an address. "Owner" of a
frame means the worker that runs the stack the frame is on; for a frame whose node is open, the fields of the node
belong to whoever holds its lock. A frame is known by its number, stack * MAX_PLY + ply.

One file a subject, all of whose names can be had from here: `layout` (sizes), `chess` (position, tables, evaluation),
`node_record` (stacks with their nodes), `worker_record`, `header` (what all share), `pruning_record` (selective search,
its modes), `simulation` (virtual time).
"""

# ruff: noqa: F403
from psearch_core.records.chess import *
from psearch_core.records.header import *
from psearch_core.records.layout import *
from psearch_core.records.node_record import *
from psearch_core.records.pruning_record import *
from psearch_core.records.simulation import *
from psearch_core.records.worker_record import *
