"""The file of a trace: the Trace Event format, which ui.perfetto.dev and chrome://tracing open; looked at before the
search, replaced as a whole after it."""

from __future__ import annotations

import contextlib
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from psearch.files.safe_files import AtomicFile
from psearch.results import PsearchError
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


def _is_special(path: Path) -> bool:
    """A device or a pipe: written to, never replaced."""
    return path.exists() and not stat.S_ISREG(path.stat().st_mode)


def check_trace(path: Path) -> None:
    """Raise PsearchError if a trace cannot be written there. Leaves what is there as it is."""
    if str(path) == "-":
        raise PsearchError("a trace goes to a file: standard output is for the answer")
    target = Path(os.path.realpath(path))
    folder = target.parent
    if target.is_dir():
        reason = "it is a folder"
    elif not folder.is_dir():
        reason = f"there is no folder {folder}"
    elif not os.access(target if target.exists() else folder, os.W_OK):
        reason = "permission denied"
    elif not _is_special(target) and not os.access(folder, os.W_OK | os.X_OK):
        reason = f"permission denied in {folder}"
    else:
        return
    raise PsearchError(f"cannot write the trace {path}: {reason}")


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[TextIO]:
    """Open a new file that takes the place of the old one at the end, if nothing went wrong."""
    target = Path(os.path.realpath(path))
    if _is_special(target):
        with target.open("w", encoding="utf-8") as out:
            yield out
        return
    with AtomicFile(target, target.with_name(f".{target.name}.{os.getpid()}.new")) as out:
        yield out.stream
        out.commit()
