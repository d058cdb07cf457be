"""Node type prediction: counters, and what is learnt from them."""

from __future__ import annotations

from psearch_core.records.layout import record

TYPES = 3
BOUNDS = 3  # of the table entry: none (or exact), upper, lower
DEPTHS = 20  # remaining depth, the last for all above
PROGRESS = 8  # moves done without a cutoff, in steps: see `progress_step`
BINS = 16
"""Of probabilities, in reliability curves."""
CERTAIN = 1 << 16
"""Probabilities are integers in units of 1/65536, so that every machine computes the same."""

outcomes_dtype = record(
    [
        # by expected type, table bound, depth, progress at the end: nodes that failed low or were exact, nodes that cut
        ("ended", "i4", (TYPES, BOUNDS, DEPTHS, PROGRESS, 2)),
        ("deepest", "i8"),  # depth among them
        # by the type of the node, its depth and the step of the move's number: moves searched, their nodes
        ("move_sizes", "i8", (TYPES, DEPTHS, PROGRESS, 2)),
        # moves taken at nodes that other workers were inside, by P(needed) at that time: all, and those whose result
        # was used in the end
        ("needed_seen", "i8", (BINS,)),
        ("needed_used", "i8", (BINS,)),
        ("wasted", "i8", (TYPES,)),  # nodes thrown away, by the expected type of the node that was cut off
    ]
)

prediction_dtype = record(
    [
        ("seen", "i8", (TYPES, BOUNDS, DEPTHS, PROGRESS)),  # all outcomes so far; older iterations count less
        ("cut", "i8", (TYPES, BOUNDS, DEPTHS, PROGRESS)),
        ("p_no_cut", "i4", (TYPES, BOUNDS, DEPTHS, PROGRESS)),  # P(no cutoff), in 1/65536
        ("p_pass", "i4", (TYPES, BOUNDS, DEPTHS, PROGRESS)),  # P(the next move is done without a cutoff), the same
        ("move_sizes", "i8", (TYPES, DEPTHS, PROGRESS, 2)),  # of all workers; older iterations count less
        ("move_size", "i8", (TYPES, DEPTHS, PROGRESS)),  # expected nodes of a move of a node
        ("join_cost", "i8"),  # nodes that a worker could search in the time a join takes, measured
        ("fresh", "i8", (TYPES, BOUNDS, DEPTHS, PROGRESS, 2)),  # `ended` of all workers; zero but during a merge
        # for the study of predictions: what no merge forgets
        ("all_seen", "i8", (TYPES, BOUNDS, DEPTHS, PROGRESS)),
        ("all_cut", "i8", (TYPES, BOUNDS, DEPTHS, PROGRESS)),
        # by the P(no cutoff) that was in force, at entry and after moves: nodes, nodes without cutoff, sum of the
        # predictions and of their squared errors (in 1/65536)
        ("bin_seen", "i8", (2, BINS)),
        ("bin_no_cut", "i8", (2, BINS)),
        ("bin_p", "i8", (2, BINS)),
        ("bin_error", "i8", (2, BINS)),
    ]
)
