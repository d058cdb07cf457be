"""Trace files in the Trace Event format, with slices of time on tracks, for ui.perfetto.dev and chrome://tracing.

A path is checked before the search; the file is replaced as a whole after it. A file whose name ends with `.gz` is
compressed.
"""

from __future__ import annotations

import contextlib
import gzip
import heapq
import io
import json
import os
import stat
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from psearch.files.safe_files import AtomicFile, unwritable
from psearch.results import PsearchError

TraceEvent = dict[str, Any]

SEARCH_PID, WORKERS_PID, SPLITS_PID = 1, 2, 3
ITERATIONS_TID, FIRST_WORKER_TID, FIRST_SPLITS_TID = 10, 1000, 10_000
"""Numbers of the first track in each group. None is 0 or used twice: some viewers would drop the process."""
_NS_PER_US = 1000
_PACKED = ".gz"
_OPENINGS = (b'{"displayTimeUnit":', b'{"psearch_recording":')
"""First bytes of a trace and of a recording."""
_LONGEST_OPENING = 32


@dataclass(slots=True)
class Slice:
    """A slice of time, in nanoseconds from the start of the search, with slices inside it."""

    name: str
    begin: int
    end: int
    args: dict[str, Any]
    within: list[Slice] = field(default_factory=list)

    def part(self, begin: int, end: int, name: str, args: dict[str, Any]) -> None:
        """Add a slice inside this one, cut so that slices nest."""
        begin = min(max(begin, self.begin), self.end)
        end = min(max(end, begin), self.end)
        for other in reversed(self.within):  # latest end first
            end = max(end, other.end)
            if other.end <= begin:
                break
            if other.begin < begin:
                begin = other.end
                break
        self.within.append(Slice(name, begin, end, args))


def on_lanes(slices: Iterable[Slice]) -> Iterator[tuple[int, Slice]]:
    """Yield each slice, sorted by their begins, with the number of a lane on which it overlaps no other."""
    busy: list[tuple[int, int]] = []  # end and lane
    free: list[int] = []
    for part in slices:
        while busy and busy[0][0] <= part.begin:
            heapq.heappush(free, heapq.heappop(busy)[1])
        lane = heapq.heappop(free) if free else len(busy)
        heapq.heappush(busy, (part.end, lane))
        yield lane, part


def _slice_events(pid: int, tid: int, slices: Iterable[Slice]) -> Iterator[TraceEvent]:
    """Yield an event for each slice, followed by those of the slices inside it."""
    for part in slices:
        ts, dur = part.begin / _NS_PER_US, (part.end - part.begin) / _NS_PER_US
        yield {"ph": "X", "name": part.name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": part.args}
        yield from _slice_events(pid, tid, sorted(part.within, key=lambda inner: (inner.begin, -inner.end)))


def _name_events(kind: str, pid: int, tid: int, name: str) -> Iterator[TraceEvent]:
    """Yield events with name and position of a track, or of a group (kind `process`) whose first track is `tid`."""
    place = pid if kind == "process" else tid
    for fact, args in (("name", {"name": name}), ("sort_index", {"sort_index": place})):
        yield {"ph": "M", "name": f"{kind}_{fact}", "pid": pid, "tid": tid, "ts": 0, "args": args}


def trace_events(
    workers: Iterable[Iterable[Slice]], is_virtual: bool, iterations: Iterable[Slice], lives: Iterable[Slice]
) -> Iterator[TraceEvent]:
    """Yield all events of a trace: of workers, of searches of the root, and of split points in order of begin."""
    yield from _name_events("process", WORKERS_PID, FIRST_WORKER_TID, f"workers{' (virtual time)' * is_virtual}")
    for worker, slices in enumerate(workers):
        tid = FIRST_WORKER_TID + worker
        yield from _name_events("thread", WORKERS_PID, tid, f"worker {worker}")
        yield from _slice_events(WORKERS_PID, tid, slices)
    yield from _name_events("process", SEARCH_PID, ITERATIONS_TID, "search")
    yield from _name_events("thread", SEARCH_PID, ITERATIONS_TID, "iterations")
    yield from _slice_events(SEARCH_PID, ITERATIONS_TID, iterations)
    yield from _name_events("process", SPLITS_PID, FIRST_SPLITS_TID, "split points")
    lanes = 0
    for lane, life in on_lanes(lives):
        if lane == lanes:
            lanes += 1
            yield from _name_events("thread", SPLITS_PID, FIRST_SPLITS_TID + lane, f"split points {lanes}")
        yield from _slice_events(SPLITS_PID, FIRST_SPLITS_TID + lane, [life])


def write_events(out: TextIO, facts: dict[str, Any], events: Iterator[TraceEvent]) -> None:
    """Write events one a line, so that people can read the file. facts: about the search, the key `psearch` first."""
    encode = json.JSONEncoder(separators=(",", ":")).encode
    out.write(f'{{"displayTimeUnit":"ns","otherData":{encode(facts)},"traceEvents":[')
    separator = "\n"
    for event in events:
        out.write(separator + encode(event))
        separator = ",\n"
    out.write("\n]}\n")


def _is_special(path: Path) -> bool:
    """Tell whether a path is a device or a pipe, which is written to and never replaced."""
    return path.exists() and not stat.S_ISREG(path.stat().st_mode)


def _is_replaceable(path: Path) -> bool:
    """Tell whether a path names no file, an empty or special one, a trace or a recording."""
    if not path.exists() or _is_special(path):
        return True
    try:
        with gzip.open(path) if path.name.endswith(_PACKED) else path.open("rb") as file:
            head = file.read(_LONGEST_OPENING)
    except (OSError, EOFError, zlib.error):
        return False
    return not head or head.startswith(_OPENINGS)


def check_trace(path: Path, what: str = "trace") -> None:
    """Raise PsearchError if a trace cannot be written to a path, or would replace a file of another kind. Change
    nothing there. what: name for the message."""
    if str(path) == "-":
        raise PsearchError(f"a {what} goes to a file: standard output is for the answer")
    target = Path(os.path.realpath(path))
    folder = target.parent
    reason = unwritable(path)
    if not reason and not _is_special(target) and not os.access(folder, os.W_OK | os.X_OK):
        reason = f"permission denied in {folder}"
    elif not reason and not _is_replaceable(path):
        reason = "that file holds something else; choose another name, or delete it"
    if reason:
        raise PsearchError(f"cannot write the {what} {path}: {reason}")


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[TextIO]:
    """Open a new file that replaces the old one at the end, unless an exception is raised."""
    target = Path(os.path.realpath(path))
    if _is_special(target):
        with target.open("w", encoding="utf-8") as out:
            yield out
        return
    with AtomicFile(target, target.with_name(f".{target.name}.{os.getpid()}.new")) as out:
        if path.name.endswith(_PACKED):
            packed = gzip.GzipFile("", "wb", fileobj=out.stream.buffer, mtime=0)
            with packed, io.TextIOWrapper(packed, "utf-8") as text:
                yield text
        else:
            yield out.stream
        out.commit()
