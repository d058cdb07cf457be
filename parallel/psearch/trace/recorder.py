"""A trace of one search: what each worker did when, and the life of every node that was shared.

The workers write events into logs of bounded size (`scheduler/trace_log.py`); after the search the parent turns them
into slices of time and writes those to a file (`trace_file.py`):

- "search": one slice for each search of the root;
- "workers": a track for each worker with slices "search", "idle" and "join", which fill the time of the search
  without gap or overlap; inside "search", "aborted work" for what was thrown away;
- "split points": a slice for each open node that a helper joined, from its opening until the last one had left it,
  on as many tracks as there were such nodes at one time.

Times are in microseconds from the start of the search. In virtual time the file depends on nothing but the arguments
of the search, to the last byte. A worker whose log is full has a slice "not recorded" from there on.
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
"""Items written between two looks at whether the trace is still wanted: some milliseconds of work."""
_TICKS_PER_NS = 1000
_MAIN_ROOT_FRAME = 0
_UNFINISHED = -1
"""Outcome of an open node whose workers were killed."""
_OUTCOMES = {0: "exhausted", CLOSED_CUTOFF: "cutoff", CLOSED_ABORTED: "aborted", _UNFINISHED: "unfinished"}
_BOUNDS = {BOUND_EXACT: "exact", BOUND_LOWER: "lower", BOUND_UPPER: "upper", ROOT_STOPPED: "stopped"}
_ANY_CASTLING = chess.Board(None, chess960=True)
"""A board for moves that are written without a position at hand: castling as king takes rook."""
MoveName = Callable[[int], str]
"""A move of the search in words."""


def _chess_move_name(code: int) -> str:
    return to_chess_move(code, _ANY_CASTLING).uci()


class Abandoned(Exception):
    """The trace that was being written is not wanted any more."""


def trace_capacity(workers: int) -> int:
    """Return events that fit into the log of each worker: 16 MiB of them at most, 128 MiB for all together."""
    return min(1 << 18, (1 << 21) // workers)


def ring_capacity(workers: int) -> int:
    """Return the capacity of a log where only what happened last is kept: 256 KiB of them at most, 32 MiB for all
    together."""
    return min(_RING_EVENTS_OF_A_WORKER, (1 << 19) // workers)


class Event(NamedTuple):
    """A record of `trace_event_dtype` as Python numbers, which are quicker to look at one by one."""

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
    """Return the records of an array one by one."""
    return map(Event._make, events.tolist())


def split_name(number: int) -> str:
    """Name an open node: the worker that opened it, and how many it had opened by then."""
    return f"{number & (1 << WORKER_BITS) - 1}.{number >> WORKER_BITS}"


def _node_args(event: Event) -> dict[str, Any]:
    """Return the arguments of the open node that an event is about."""
    if event.frame < 0:
        return {"split": "root", "ply": 0}
    return {"split": split_name(event.split), "depth": event.depth, "ply": event.frame % MAX_PLY}


def _root_name(depth: int, better_lines: int) -> str:
    """Name a search of the root; better_lines: how many of several best moves were found before."""
    return f"depth {depth}, line {better_lines + 1}" if better_lines else f"depth {depth}"


def _root_slice(event: Event, move_name: MoveName) -> Slice:
    args: dict[str, Any] = {"depth": event.depth, "bound": _BOUNDS[event.outcome]}
    if event.outcome != ROOT_STOPPED:
        args["score"] = event.value
    if event.move:
        args["move"] = move_name(event.move)
    return Slice(_root_name(event.depth, event.helpers), event.begin, event.time, args)


class WorkerTrack:
    """One worker's events, in the order of its log, as slices that follow each other."""

    def __init__(self, move_name: MoveName) -> None:
        self._move_name = move_name
        self._done: list[Slice] = []
        self._now = Slice("idle", 0, 0, {})
        self._run = 0
        """number of the slice with which the present uninterrupted search began"""

    def switch(self, at: int, name: str, args: dict[str, Any]) -> None:
        """Switch: the worker does something else from now on."""
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
        """Note work thrown away: back to where the move was taken, but no further than this worker searched without
        pause. Another worker may have taken the move, or this one may have been idle and elsewhere since."""
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
    """The beginning of what is recorded."""

    number: int
    """of recordings on this arena before this one"""
    ticks: int
    """of the time stamp counter; 0 in virtual time"""
    ns: int
    """of `time.perf_counter_ns` at that moment"""


class Recorder:
    """Records the searches on an arena that has room for a trace, one after the other, and writes the last one.

    With `virtual` the times are those of the driver in virtual time, else of the time stamp counter. With `ring` the
    logs keep what happened last, for those who look on; there is no end to what may happen, and nothing to write.
    `start` is when the present recording, or the last one, began, `end_ns` how long the last search took.
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
        """Begin before a search is handed to the workers: empty logs, and the clock at 0."""
        heads = self._logs["head"]
        for name in ("count", "dropped", "dropped_from"):
            heads[name] = 0
        heads["ring"] = int(self._ring)
        heads["clock"] = 0 if self.is_virtual else -1
        ns = time.perf_counter_ns()
        self.start = TraceStart(self.start.number + 1, 0 if self.is_virtual else int(read_cycles()), ns)

    def end(self, now: int = 0) -> None:
        """End when no worker searches any more; now: virtual time, in ticks."""
        if self.is_virtual:
            self.end_ns = now // _TICKS_PER_NS
            return
        cycles = int(read_cycles()) - self.start.ticks
        self.end_ns = time.perf_counter_ns() - self.start.ns
        self._ns_per_cycle = self.end_ns / max(cycles, 1)

    @property
    def dropped(self) -> dict[int, int]:
        """Return the events that found no room, by worker."""
        counts = self._logs["head"]["dropped"]
        return {int(worker): int(counts[worker]) for worker in np.flatnonzero(counts)}

    def write(
        self,
        path: Path,
        facts: dict[str, Any],
        is_wanted: Callable[[], bool] = lambda: True,
        move_name: MoveName | None = None,
    ) -> None:
        """Write the trace of the last search; facts about it go into the file. OSError when that fails.

        move_name: of a game's moves; None: they are of chess.

        A file that is there already is replaced when the new one is complete. A full log takes seconds: `is_wanted` is
        called now and then, and when it returns False `Abandoned` is raised and what is there stays.
        """
        if self._ring:
            raise PsearchError("only what happened last was recorded: that is no trace")
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
        """Return what one worker did in the last search: slices that fill its time, and within them work thrown
        away."""
        head = self._logs[worker]["head"]
        track = WorkerTrack(self._move_name)
        for event in self._while_wanted(each(self._events(worker))):
            track.add(event)
        if head["dropped"]:
            since = self._times(np.array([head["dropped_from"]]))[0]
            track.switch(int(since), "not recorded", {"events": int(head["dropped"])})
        return track.finish(self.end_ns)

    def iterations(self) -> Iterator[Slice]:
        """Yield the searches of the main root, one after the other; the one under way when the workers were killed
        comes last."""
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
        """Yield each open node that a helper joined, from its opening until the last one had left it, or up to now if
        the workers were killed."""
        events = list(each(self._of_kind(TRACE_SPLIT)))
        if not self.arena.header[0]["done"]:
            known = {event.split for event in events}
            events += [event for event in self._open_nodes() if event.split not in known]
        for event in sorted(events, key=lambda event: (event.begin, event.split)):
            kind = TYPE_NAMES[event.type]
            args = {**_node_args(event), "type": kind, "p_needed": round(event.p_needed / CERTAIN, 4)}
            args |= {"helpers": event.helpers, "outcome": _OUTCOMES[event.outcome]}
            yield Slice(f"{kind} node", event.begin, max(event.begin, event.time), args)

    def _while_wanted(self, items: Iterable[Any]) -> Iterator[Any]:
        for number, item in enumerate(items):
            if number % _ITEMS_PER_LOOK == 0 and not self._is_wanted():
                raise Abandoned
            yield item

    def _times(self, ticks: np.ndarray) -> np.ndarray:
        """Return whole nanoseconds since the start, within the search: viewers know no shorter times."""
        if self.is_virtual:
            passed = ticks // _TICKS_PER_NS
        else:
            passed = ((ticks - self.start.ticks) * self._ns_per_cycle).astype(np.int64)
        return passed.clip(0, self.end_ns)

    def _events(self, worker: int) -> np.ndarray:
        """Return a copy of a worker's log, with times since the start."""
        log = self._logs[worker]
        events: np.ndarray = log["events"][: int(log["head"]["count"])].copy()
        for name in ("time", "begin"):
            events[name] = self._times(events[name])
        return events

    def _of_kind(self, kind: int) -> np.ndarray:
        """Return the events of a kind in all logs."""
        logs = map(self._events, range(self.arena.workers))
        return np.concatenate([events[events["kind"] == kind] for events in logs])

    def _open_nodes(self) -> Iterator[Event]:
        """Yield the lives, up to now, of the nodes that were shared when the workers were killed."""
        for number in np.flatnonzero(self.arena.stack["state"] != STACK_FREE).tolist():
            frames = self.arena.frames[number * MAX_PLY : (number + 1) * MAX_PLY]
            for ply in np.flatnonzero((frames["node"]["open"] != 0) & (frames["node"]["joined"] > 0)).tolist():
                node, trace = frames[ply]["node"], frames[ply]["trace"]
                begin, split = int(self._times(trace["opened"].reshape(1))[0]), int(trace["split"])
                depth, kind, needed = (int(node[name]) for name in ("depth", "split_type", "p_needed"))
                where, outcome = (0, TRACE_SPLIT, number * MAX_PLY + ply), (0, int(node["joined"]), _UNFINISHED)
                yield Event(self.end_ns, begin, split, *where, depth, kind, needed, *outcome)
