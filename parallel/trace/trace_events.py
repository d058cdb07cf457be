"""The Trace Event format, which ui.perfetto.dev and chrome://tracing open."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, TextIO

from psearch.trace.timeline import Slice

TraceEvent = dict[str, Any]

SEARCH_PID, WORKERS_PID, SPLITS_PID = 1, 2, 3
ITERATIONS_TID, FIRST_WORKER_TID, FIRST_SPLITS_TID = 10, 1000, 10_000
"""No thread number is 0, or used twice: some viewers drop the process."""
_NS_PER_US = 1000


def slice_events(pid: int, tid: int, slices: Iterator[Slice]) -> Iterator[TraceEvent]:
    """Complete events, each before those within it."""
    for part in slices:
        ts, dur = part.begin / _NS_PER_US, (part.end - part.begin) / _NS_PER_US
        yield {"ph": "X", "name": part.name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": part.args}
        yield from slice_events(pid, tid, iter(sorted(part.within, key=lambda inner: (inner.begin, -inner.end))))


def process(pid: int, tid: int, name: str) -> Iterator[TraceEvent]:
    """Name and place of a group of tracks; tid: its first."""
    yield {"ph": "M", "name": "process_name", "pid": pid, "tid": tid, "ts": 0, "args": {"name": name}}
    yield {"ph": "M", "name": "process_sort_index", "pid": pid, "tid": tid, "ts": 0, "args": {"sort_index": pid}}


def thread(pid: int, tid: int, name: str) -> Iterator[TraceEvent]:
    """Name and place of a track."""
    yield {"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "ts": 0, "args": {"name": name}}
    yield {"ph": "M", "name": "thread_sort_index", "pid": pid, "tid": tid, "ts": 0, "args": {"sort_index": tid}}


OPENING = '{"displayTimeUnit":"ns","otherData":{"psearch":'
"""How every trace of psearch begins."""


def write_events(out: TextIO, facts: dict[str, Any], events: Iterator[TraceEvent]) -> None:
    """Write one event a line, so that the file can be read without a viewer, too. facts: `psearch`, its version,
    first."""
    encode = json.JSONEncoder(separators=(",", ":")).encode
    out.write(f'{{"displayTimeUnit":"ns","otherData":{encode(facts)},"traceEvents":[')
    separator = "\n"
    for event in events:
        out.write(separator + encode(event))
        separator = ",\n"
    out.write("\n]}\n")
