"""The trace: what the workers did, for whoever wants to see it."""

from __future__ import annotations

from psearch_core.records.layout import record

# Events that a worker may have in its log; which fields an event has is said in `psearch.scheduler.trace_log`
TRACE_TAKE, TRACE_JOIN, TRACE_IDLE, TRACE_ABORT, TRACE_SPLIT, TRACE_ROOT = range(1, 7)

ROOT_STOPPED = -1
"""Outcome of a search of the root that was stopped; else a bound."""
trace_event_dtype = record(
    [
        ("time", "i8"),  # when it happened, or ended: time stamp counter, or virtual ticks
        ("begin", "i8"),  # when it began
        ("split", "i8"),  # number of the open node it is about, as in `frame_trace_dtype`
        ("value", "i8"),  # nodes thrown away (TRACE_ABORT); score (TRACE_ROOT)
        ("kind", "i4"),
        ("frame", "i4"),  # number of the frame of the node it is about, -1 none
        ("depth", "i4"),
        ("type", "i4"),  # expected type of the node
        ("p_needed", "i4"),  # in 1/65536
        ("move", "i4"),  # taken by the helper (TRACE_JOIN); best (TRACE_ROOT)
        ("helpers", "i4"),  # that joined (TRACE_SPLIT)
        # `closed` of the node (TRACE_SPLIT); 1: the value came too late (TRACE_ABORT); bound (TRACE_ROOT)
        ("outcome", "i4"),
    ]
)

trace_log_dtype = record(
    [
        # Before the events of each worker, and written by that worker; the clock also by the driver in virtual time
        ("count", "i8"),  # atomic; events in the log: an event is complete once it is counted
        ("dropped", "i8"),  # events that found no room
        ("dropped_from", "i8"),  # when the first of them happened
        ("clock", "i8"),  # virtual time at which this worker's turn began; -1: use the time stamp counter
        # 1: a ring, for whoever looks on: the latest events take the place of the oldest, none is dropped. Parent
        ("ring", "i8"),
        ("pad", "i8", (3,)),
    ]
)
