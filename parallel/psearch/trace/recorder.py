"""The trace of one search: the activity of each worker over time, and the life of every shared node.

The workers write events into logs of bounded size (`scheduler/trace_log.py`). After the search the parent converts them
to slices of time and writes these to a file (`trace_file.py`):

- "search": one slice for each search of the root;
- "workers": a track for each worker with slices "search", "idle" and "join", which fill the time of the search
  without gap or overlap; inside "search", slices "aborted work" for work whose result was discarded;
- "split points": a slice for each open node that a helper joined, from its opening until the last worker left it,
  on as many tracks as there were such nodes at one time.

Times are in microseconds from the start of the search. In virtual time the file depends only on the arguments of the
search, to the last byte. When a worker's log is full, the rest of its track is a slice "not recorded".
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import chess
import numpy as np

from psearch.arena.arena import Arena
from psearch.results import PsearchError
from psearch.scheduler.scheduler_entries import read_cycles
from psearch.trace.trace_file import Slice, replacing, trace_events, write_events
from psearch.version import __version__
from psearch_core.chess.board.bridge import to_chess_move
from psearch_core.constants import (
    BOUND_EXACT,
    BOUND_LOWER,
    BOUND_UPPER,
    CLOSED_ABORTED,
    CLOSED_CUTOFF,
    STACK_FREE,
    TYPE_NAMES,
)
from psearch_core.records import (
    CERTAIN,
    MAX_PLY,
    ROOT_STOPPED,
    TRACE_ABORT,
    TRACE_IDLE,
    TRACE_JOIN,
    TRACE_ROOT,
    TRACE_SPLIT,
    TRACE_TAKE,
    WORKER_BITS,
    trace_event_dtype,
)

_RING_EVENTS_OF_A_WORKER = 1 << 12
_ITEMS_PER_LOOK = 1 << 10
"""Items written between two checks of whether the trace is still wanted: some milliseconds of work."""
_TICKS_PER_NS = 1000
_MAIN_ROOT_FRAME = 0
_UNFINISHED = -1
"""Outcome of a node that was open when its workers were killed."""
OUTCOMES = {0: "exhausted", CLOSED_CUTOFF: "cutoff", CLOSED_ABORTED: "aborted", _UNFINISHED: "unfinished"}
BOUNDS = {BOUND_EXACT: "exact", BOUND_LOWER: "lower", BOUND_UPPER: "upper", ROOT_STOPPED: "stopped"}
_ANY_CASTLING = chess.Board(None, chess960=True)
"""Board for writing moves without their position, with castling as king takes rook."""
MoveName = Callable[[int], str]
"""Function that returns the text of a move code."""


def _chess_move_name(code: int) -> str:
    return to_chess_move(code, _ANY_CASTLING).uci()


class Abandoned(Exception):
    """The trace is no longer wanted, before it was complete."""


def trace_capacity(workers: int) -> int:
    """Return the number of events in each worker's log: at most 16 MiB, and at most 128 MiB for all workers."""
    return min(1 << 18, (1 << 21) // workers)


def ring_capacity(workers: int) -> int:
    """Return the number of events in a log that keeps only the latest: at most 256 KiB, and 32 MiB for all workers."""
    return min(_RING_EVENTS_OF_A_WORKER, (1 << 19) // workers)


class Event(NamedTuple):
    """A record of `trace_event_dtype` as Python numbers, which are faster to read one by one."""

    time: int
    begin: int
    split: int
    value: int
    kind: int
    frame: int
    depth: int
    type: int
    p_needed: int
    move: int
    helpers: int
    outcome: int


if Event._fields != trace_event_dtype.names:
    raise AssertionError(f"fields of an event: {Event._fields}, {trace_event_dtype.names}")


def each(events: np.ndarray) -> Iterator[Event]:
    """Iterate over the records of an array."""
    return map(Event._make, events.tolist())


def split_name(number: int) -> str:
    """Return the name of an open node: the worker that opened it, and its count of opened nodes."""
    return f"{number & (1 << WORKER_BITS) - 1}.{number >> WORKER_BITS}"


def _node_args(event: Event) -> dict[str, Any]:
    """Return the arguments of a slice about an event's open node."""
    if event.frame < 0:
        return {"split": "root", "ply": 0}
    return {"split": split_name(event.split), "depth": event.depth, "ply": event.frame % MAX_PLY}


def _root_name(depth: int, better_lines: int) -> str:
    """Return the name of a search of the root; better_lines: number of better lines found before."""
    return f"depth {depth}, line {better_lines + 1}" if better_lines else f"depth {depth}"


def _root_slice(event: Event, move_name: MoveName) -> Slice:
    args: dict[str, Any] = {"depth": event.depth, "bound": BOUNDS[event.outcome]}
    if event.outcome != ROOT_STOPPED:
        args["score"] = event.value
    if event.move:
        args["move"] = move_name(event.move)
    return Slice(_root_name(event.depth, event.helpers), event.begin, event.time, args)


class WorkerTrack:
    """Converts one worker's events, in the order of its log, to consecutive slices."""

    def __init__(self, move_name: MoveName) -> None:
        self._move_name = move_name
        self._done: list[Slice] = []
        self._now = Slice("idle", 0, 0, {})
        self._run = 0
        """Index of the slice with which the present uninterrupted search began."""

    def switch(self, at: int, name: str, args: dict[str, Any]) -> None:
        """End the present slice and begin another."""
        at = max(at, self._now.begin)
        self._now.end = at
        if at > self._now.begin or self._now.within or self._now.name == "join":
            self._done.append(self._now)
        if name != "search" or self._now.name != "search":
            self._run = len(self._done)
        self._now = Slice(name, at, at, args)

    def add(self, event: Event) -> None:
        """Add the next event of the log."""
        kind, at = event.kind, event.time
        if kind == TRACE_IDLE:
            self.switch(at, "idle", {})
        elif kind == TRACE_TAKE:
            self.switch(at, "search", _node_args(event))
        elif kind == TRACE_JOIN:
            args = {**_node_args(event), "move": self._move_name(event.move)}
            self.switch(event.begin, "join", {**args, "p_needed": round(event.p_needed / CERTAIN, 4)})
            self.switch(at, "search", args)
        elif kind == TRACE_ABORT:
            self._abort(event)
        elif kind == TRACE_ROOT and event.frame != _MAIN_ROOT_FRAME:
            root = _root_slice(event, self._move_name)
            self._now.end = max(at, self._now.begin)
            self._now.part(root.begin, root.end, root.name, root.args)

    def _abort(self, event: Event) -> None:
        """Add discarded work, back to the start of its move, but only as far as this worker searched without a pause:
        another worker may have started the move, or this one may have been idle since."""
        begin, end = event.begin, event.time
        args = {**_node_args(event), "cause": "value came too late" if event.outcome else "unwound"}
        self._now.end = max(end, self._now.begin)
        for number in range(len(self._done) - 1, self._run - 1, -1):
            if self._done[number].end <= begin:
                break
            self._done[number].part(begin, end, "aborted work", args)
        self._now.part(begin, end, "aborted work", {**args, "nodes": event.value})

    def finish(self, end: int) -> Iterator[Slice]:
        """Yield all slices; the last one lasts until the search ended."""
        self.switch(end, "idle", {})
        yield from self._done


class TraceStart(NamedTuple):
    """Start of a recording."""

    number: int
    """Number of earlier recordings on this arena."""
    ticks: int
    """Time stamp counter at the start; 0 in virtual time."""
    ns: int
    """Value of `time.perf_counter_ns` at the start."""


class Recorder:
    """Records the searches on an arena that has room for a trace, one after the other, and writes the last one.

    virtual: times are those of the driver in virtual time, not of the time stamp counter; ring: logs keep the latest
    events, for a live view. `start` describes the last recording, `end_ns` is the duration of the last search.
    """

    def __init__(self, arena: Arena, virtual: bool = False, ring: bool = False) -> None:
        if arena.trace_logs is None:
            raise PsearchError("this arena was made without room for a trace")
        self.arena = arena
        self.is_virtual = virtual
        self.start = TraceStart(-1, 0, 0)
        self.end_ns = 0
        self._logs = arena.trace_logs
        self._ring = ring
        self._ns_per_cycle = 1.0
        self._is_wanted: Callable[[], bool] = lambda: True
        self._move_name: MoveName = _chess_move_name

    def begin(self) -> None:
        """Clear the logs and set the clock to zero; call this before a search is given to the workers."""
        heads = self._logs["head"]
        for name in ("count", "dropped", "dropped_from"):
            heads[name] = 0
        heads["ring"] = int(self._ring)
        heads["clock"] = 0 if self.is_virtual else -1
        ns = time.perf_counter_ns()
        self.start = TraceStart(self.start.number + 1, 0 if self.is_virtual else int(read_cycles()), ns)

    def end(self, now: int = 0) -> None:
        """Stop the clock; call this when all workers have left the search. now: virtual time, in ticks."""
        if self.is_virtual:
            self.end_ns = now // _TICKS_PER_NS
            return
        cycles = int(read_cycles()) - self.start.ticks
        self.end_ns = time.perf_counter_ns() - self.start.ns
        self._ns_per_cycle = self.end_ns / max(cycles, 1)

    @property
    def dropped(self) -> dict[int, int]:
        """Number of events that did not fit into its log, for each worker that lost some."""
        counts = self._logs["head"]["dropped"]
        return {int(worker): int(counts[worker]) for worker in np.flatnonzero(counts)}

    def write(
        self,
        path: Path,
        facts: dict[str, Any],
        is_wanted: Callable[[], bool] = lambda: True,
        move_name: MoveName | None = None,
    ) -> None:
        """Write the trace of the last search, with facts about it, to a file. Raises OSError when that fails.

        is_wanted: called regularly, since a full log takes seconds; if False, `Abandoned` is raised; move_name: returns
        the text of a move; None: moves are of chess. An existing file is replaced when the new one is complete.
        """
        if self._ring:
            raise PsearchError("only the latest events were recorded, not a trace")
        self._is_wanted, self._move_name = is_wanted, move_name or _chess_move_name
        about = {
            "psearch": __version__,
            **facts,
            "clock": "virtual" if self.is_virtual else "real",
            "workers": self.arena.workers,
            "finished": bool(self.arena.header[0]["done"]),
            "dropped_events": sum(self.dropped.values()),
        }
        workers = map(self.slices_of, range(self.arena.workers))
        events = trace_events(workers, self.is_virtual, self.iterations(), self.lives())
        with replacing(path) as out:
            write_events(out, about, self._while_wanted(events))

    def slices_of(self, worker: int) -> Iterator[Slice]:
        """Return the slices of one worker in the last search, which fill its time and contain discarded work."""
        head = self._logs[worker]["head"]
        track = WorkerTrack(self._move_name)
        for event in self._while_wanted(each(self._events(worker))):
            track.add(event)
        if head["dropped"]:
            since = self._times(np.array([head["dropped_from"]]))[0]
            track.switch(int(since), "not recorded", {"events": int(head["dropped"])})
        return track.finish(self.end_ns)

    def iterations(self) -> Iterator[Slice]:
        """Yield the searches of the main root in order; the last may be one during which the workers were killed."""
        roots = self._of_kind(TRACE_ROOT)
        roots = roots[roots["frame"] == _MAIN_ROOT_FRAME]
        last_end = 0
        for event in each(roots[np.lexsort((roots["time"], roots["begin"]))]):
            part = _root_slice(event, self._move_name)
            part.begin = max(part.begin, last_end)
            last_end = part.end = max(part.begin, part.end)
            yield part
        if not self.arena.header[0]["done"]:
            entered = int(self._times(self.arena.frames["trace"]["entered"][:1])[0])
            root = self.arena.stack[0]
            depth = int(root["root_depth"])
            name = _root_name(depth, int(root["root_line"]))
            yield Slice(name, max(last_end, entered), self.end_ns, {"depth": depth, "bound": "unfinished"})

    def lives(self) -> Iterator[Slice]:
        """Yield the life of each open node that a helper joined, until the last worker left it or all were killed."""
        events = list(each(self._of_kind(TRACE_SPLIT)))
        if not self.arena.header[0]["done"]:
            known = {event.split for event in events}
            events += [event for event in self._open_nodes() if event.split not in known]
        for event in sorted(events, key=lambda event: (event.begin, event.split)):
            kind = TYPE_NAMES[event.type]
            args = {**_node_args(event), "type": kind, "p_needed": round(event.p_needed / CERTAIN, 4)}
            args |= {"helpers": event.helpers, "outcome": OUTCOMES[event.outcome]}
            yield Slice(f"{kind} node", event.begin, max(event.begin, event.time), args)

    def _while_wanted(self, items: Iterable[Any]) -> Iterator[Any]:
        for number, item in enumerate(items):
            if number % _ITEMS_PER_LOOK == 0 and not self._is_wanted():
                raise Abandoned
            yield item

    def _times(self, ticks: np.ndarray) -> np.ndarray:
        """Convert ticks to whole nanoseconds since the start, the smallest unit of viewers, clipped to the search."""
        if self.is_virtual:
            passed = ticks // _TICKS_PER_NS
        else:
            passed = ((ticks - self.start.ticks) * self._ns_per_cycle).astype(np.int64)
        return passed.clip(0, self.end_ns)

    def _events(self, worker: int) -> np.ndarray:
        """Return a copy of a worker's log, with times in nanoseconds since the start."""
        log = self._logs[worker]
        events: np.ndarray = log["events"][: int(log["head"]["count"])].copy()
        for name in ("time", "begin"):
            events[name] = self._times(events[name])
        return events

    def _of_kind(self, kind: int) -> np.ndarray:
        """Return the events of one kind in all logs."""
        logs = map(self._events, range(self.arena.workers))
        return np.concatenate([events[events["kind"] == kind] for events in logs])

    def _open_nodes(self) -> Iterator[Event]:
        """Yield an event for each node that was shared when the workers were killed."""
        for number in np.flatnonzero(self.arena.stack["state"] != STACK_FREE).tolist():
            frames = self.arena.frames[number * MAX_PLY : (number + 1) * MAX_PLY]
            for ply in np.flatnonzero((frames["node"]["open"] != 0) & (frames["node"]["joined"] > 0)).tolist():
                node, trace = frames[ply]["node"], frames[ply]["trace"]
                begin, split = int(self._times(trace["opened"].reshape(1))[0]), int(trace["split"])
                depth, kind, needed = (int(node[name]) for name in ("depth", "split_type", "p_needed"))
                where, outcome = (0, TRACE_SPLIT, number * MAX_PLY + ply), (0, int(node["joined"]), _UNFINISHED)
                yield Event(self.end_ns, begin, split, *where, depth, kind, needed, *outcome)
