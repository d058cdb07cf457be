"""A trace of one search: what each worker did when, and the life of every node that was shared.

The workers write events into logs of bounded size (`tracelog.py`); after the search the parent turns them into a
file in the Trace Event format, which ui.perfetto.dev and chrome://tracing open:

- "search": one slice for each search of the root;
- "workers": a track for each worker with slices "search", "idle" and "join", which fill the time of the search
  without gap or overlap; inside "search", "aborted work" for what was thrown away;
- "split points": a slice for each open node that a helper joined, from its opening until the last one had left it,
  on as many tracks as there were such nodes at one time.

Times are in microseconds from the start of the search. In virtual time the file depends on nothing but the arguments
of the search, to the last byte. A worker whose log is full has a slice "not recorded" from there on.
"""

from __future__ import annotations

import heapq
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TextIO, TypeVar

import chess
import numpy as np

from psearch.arena.arena import Arena
from psearch.core.board.bridge import to_chess_move
from psearch.core.constants import BOUND_EXACT, BOUND_LOWER, BOUND_UPPER, CLOSED_ABORTED, CLOSED_CUTOFF, STACK_FREE
from psearch.core.records import (
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
from psearch.results import PsearchError
from psearch.scheduler.entries import read_cycles
from psearch.trace.trace_file import replacing
from psearch.version import __version__

_MOST_EVENTS = 1 << 21
_MOST_EVENTS_OF_A_WORKER = 1 << 18
_ITEMS_PER_QUESTION = 1 << 10
"""Some milliseconds of work."""
_Item = TypeVar("_Item")

_SEARCH_PID, _WORKERS_PID, _SPLITS_PID = 1, 2, 3
_ITERATIONS_TID, _FIRST_WORKER_TID, _FIRST_SPLITS_TID = 10, 1000, 10_000
"""No thread number is 0, or used twice: some viewers forget the process."""
_NS_PER_US = 1000
_TICKS_PER_NS = 1000
_MAIN_ROOT_FRAME = 0
_TYPE_NAMES = ("PV", "CUT", "ALL")
_UNFINISHED = -1
_OUTCOMES = {0: "exhausted", CLOSED_CUTOFF: "cutoff", CLOSED_ABORTED: "aborted", _UNFINISHED: "unfinished"}
_BOUNDS = {BOUND_EXACT: "exact", BOUND_LOWER: "lower", BOUND_UPPER: "upper", ROOT_STOPPED: "stopped"}
_ANY_CASTLING = chess.Board(None, chess960=True)
"""Moves are written without a position at hand: castling as king takes rook."""


class Abandoned(Exception):
    """A trace that was being written is not wanted any more."""


def _always() -> bool:
    return True


def trace_capacity(workers: int) -> int:
    """Events that fit into the log of each worker: 16 MiB of them at most, 128 MiB for all together."""
    return min(_MOST_EVENTS_OF_A_WORKER, _MOST_EVENTS // workers)


# -- recording -------------------------------------------------------------------------------------------------------


class Recorder:
    """Records the searches on an arena that has room for a trace, one after the other, and writes the last one.

    With `virtual` the times are those of the driver in virtual time, else of the time stamp counter.
    """

    def __init__(self, arena: Arena, virtual: bool = False) -> None:
        if arena.trace_logs is None:
            raise PsearchError("this arena was made without room for a trace")
        self._arena = arena
        self._logs = arena.trace_logs
        self._virtual = virtual
        self._start = 0
        self._start_ns = 0
        self._ns_per_cycle = 1.0
        self._end = 0
        """nanoseconds"""
        self._is_wanted = _always

    def begin(self) -> None:
        """Before a search is handed to the workers: empty logs, and the clock at 0."""
        heads = self._logs["head"]
        for name in ("count", "dropped", "dropped_from"):
            heads[name] = 0
        heads["clock"] = 0 if self._virtual else -1
        self._start_ns = time.perf_counter_ns()
        self._start = 0 if self._virtual else int(read_cycles())

    def end(self, now: int = 0) -> None:
        """When no worker searches any more; now: virtual time, in ticks."""
        if self._virtual:
            self._end = now // _TICKS_PER_NS
            return
        cycles = int(read_cycles()) - self._start
        self._end = time.perf_counter_ns() - self._start_ns
        self._ns_per_cycle = self._end / max(cycles, 1)

    @property
    def dropped(self) -> dict[int, int]:
        """Events that found no room, by worker."""
        counts = self._logs["head"]["dropped"]
        return {int(worker): int(counts[worker]) for worker in np.flatnonzero(counts)}

    def write(self, path: Path, facts: dict[str, Any], is_wanted: Callable[[], bool] = _always) -> None:
        """Write the trace of the last search; facts about it go into the file. OSError when that fails.

        A file that is there already is replaced when the new one is complete. A full log takes seconds: `is_wanted` is
        asked now and then, and when it says no `Abandoned` is raised and what is there stays.
        """
        self._is_wanted = is_wanted
        with replacing(path) as out:
            _write(out, self._facts(facts), self._while_wanted(self._trace_events()))

    def _facts(self, facts: dict[str, Any]) -> dict[str, Any]:
        return {
            "psearch": __version__,
            **facts,
            "clock": "virtual" if self._virtual else "real",
            "workers": self._arena.workers,
            "finished": bool(self._arena.header[0]["done"]),
            "dropped_events": sum(self.dropped.values()),
        }

    def _trace_events(self) -> Iterator[dict[str, Any]]:
        lives: list[np.ndarray] = []
        roots: list[np.ndarray] = []
        name = "workers (virtual time)" if self._virtual else "workers"
        yield from _process(_WORKERS_PID, _FIRST_WORKER_TID, name)
        for worker in range(self._arena.workers):
            events = self._events(worker)
            lives.append(events[events["kind"] == TRACE_SPLIT])
            roots.append(events[(events["kind"] == TRACE_ROOT) & (events["frame"] == _MAIN_ROOT_FRAME)])
            tid = _FIRST_WORKER_TID + worker
            yield from _thread(_WORKERS_PID, tid, f"worker {worker}")
            yield from _slice_events(_WORKERS_PID, tid, self._track(worker, events))
        yield from _process(_SEARCH_PID, _ITERATIONS_TID, "search")
        yield from _thread(_SEARCH_PID, _ITERATIONS_TID, "iterations")
        yield from _slice_events(_SEARCH_PID, _ITERATIONS_TID, self._iterations(np.concatenate(roots)))
        yield from _process(_SPLITS_PID, _FIRST_SPLITS_TID, "split points")
        yield from self._split_points(np.concatenate(lives))

    def _while_wanted(self, items: Iterator[_Item]) -> Iterator[_Item]:
        for number, item in enumerate(items):
            if number % _ITEMS_PER_QUESTION == 0 and not self._is_wanted():
                raise Abandoned
            yield item

    def _times(self, ticks: np.ndarray) -> np.ndarray:
        """Whole nanoseconds since the start, within the search: viewers know no shorter times."""
        if self._virtual:
            passed = ticks // _TICKS_PER_NS
        else:
            passed = ((ticks - self._start) * self._ns_per_cycle).astype(np.int64)
        return passed.clip(0, self._end)

    def _events(self, worker: int) -> np.ndarray:
        """A copy of a worker's log, with times since the start."""
        log = self._logs[worker]
        events: np.ndarray = log["events"][: int(log["head"]["count"])].copy()
        for name in ("time", "begin"):
            events[name] = self._times(events[name])
        return events

    def _track(self, worker: int, events: np.ndarray) -> Iterator[_Slice]:
        head = self._logs[worker]["head"]
        track = _WorkerTrack()
        for event in self._while_wanted(_each(events)):
            track.add(event)
        if head["dropped"]:
            since = self._times(np.array([head["dropped_from"]]))[0]
            track.switch(int(since), "not recorded", {"events": int(head["dropped"])})
        return track.finish(self._end)

    def _iterations(self, roots: np.ndarray) -> Iterator[_Slice]:
        """The searches of the main root; the one under way when the workers were killed comes last."""
        roots = roots[np.lexsort((roots["time"], roots["begin"]))]
        since = 0
        for event in _each(roots):
            part = _root_slice(event)
            part.begin = max(part.begin, since)
            since = part.end = max(part.begin, part.end)
            yield part
        if not self._arena.header[0]["done"]:
            entered = int(self._times(self._arena.frames["trace"]["entered"][:1])[0])
            root = self._arena.stack[0]
            depth = int(root["root_depth"])
            name = _root_name(depth, int(root["root_line"]))
            yield _Slice(name, max(since, entered), self._end, {"depth": depth, "bound": "unfinished"})

    def _split_points(self, lives: np.ndarray) -> Iterator[dict[str, Any]]:
        """Every life on the first track that is free."""
        if not self._arena.header[0]["done"]:
            lives = np.concatenate([lives, self._open_nodes(set(lives["split"].tolist()))])
        lives = lives[np.lexsort((lives["split"], lives["begin"]))]
        busy: list[tuple[int, int]] = []
        free: list[int] = []
        for event in _each(lives):
            life = _life(event)
            while busy and busy[0][0] <= life.begin:
                heapq.heappush(free, heapq.heappop(busy)[1])
            if free:
                track = heapq.heappop(free)
            else:
                track = _FIRST_SPLITS_TID + len(busy)
                yield from _thread(_SPLITS_PID, track, f"split points {len(busy) + 1}")
            heapq.heappush(busy, (life.end, track))
            yield from _slice_events(_SPLITS_PID, track, iter([life]))

    def _open_nodes(self, known: set[int]) -> np.ndarray:
        """Lives, up to now, of the nodes that were shared when the workers were killed."""
        found = []
        for number in np.flatnonzero(self._arena.stack["state"] != STACK_FREE):
            frames = self._arena.frames[number * MAX_PLY : (number + 1) * MAX_PLY]
            for ply in np.flatnonzero((frames["node"]["open"] != 0) & (frames["node"]["joined"] > 0)):
                node, trace = frames[ply]["node"], frames[ply]["trace"]
                if int(trace["split"]) in known:
                    continue
                life = np.zeros(1, trace_event_dtype)
                life["begin"] = self._times(trace["opened"].reshape(1))
                life["time"] = self._end
                life["split"], life["frame"] = trace["split"], number * MAX_PLY + ply
                for name in ("depth", "type", "p_needed"):
                    life[name] = node[name]
                life["helpers"], life["outcome"] = node["joined"], _UNFINISHED
                found.append(life)
        return np.concatenate([np.zeros(0, trace_event_dtype), *found])


# -- what the events say ---------------------------------------------------------------------------------------------


class _Event(NamedTuple):
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


if _Event._fields != trace_event_dtype.names:
    raise AssertionError(f"fields of an event: {_Event._fields}, {trace_event_dtype.names}")


def _each(events: np.ndarray) -> Iterator[_Event]:
    return map(_Event._make, events.tolist())


@dataclass(slots=True)
class _Slice:
    """Something that lasts, in nanoseconds from the start of the search, and what happened within it."""

    name: str
    begin: int
    end: int
    args: dict[str, Any]
    within: list[_Slice] = field(default_factory=list)

    def part(self, begin: int, end: int, name: str, args: dict[str, Any]) -> None:
        """Add what happened within, cut so that slices nest."""
        begin = min(max(begin, self.begin), self.end)
        end = min(max(end, begin), self.end)
        for other in reversed(self.within):  # in the order of their ends
            end = max(end, other.end)
            if other.end <= begin:
                break
            if other.begin < begin:
                begin = other.end
                break
        self.within.append(_Slice(name, begin, end, args))


def _split_name(number: int) -> str:
    """Worker that opened it, and how many it had opened by then."""
    return f"{number & (1 << WORKER_BITS) - 1}.{number >> WORKER_BITS}"


def _move_name(code: int) -> str:
    return to_chess_move(code, _ANY_CASTLING).uci()


def _node_args(event: _Event) -> dict[str, Any]:
    """Of the open node that an event is about."""
    if event.frame < 0:
        return {"split": "root", "ply": 0}
    return {
        "split": _split_name(event.split),
        "depth": event.depth,
        "ply": event.frame % MAX_PLY,
    }


def _probability(event: _Event) -> float:
    return round(event.p_needed / CERTAIN, 4)


def _root_name(depth: int, better_lines: int) -> str:
    return f"depth {depth}, line {better_lines + 1}" if better_lines else f"depth {depth}"


def _root_slice(event: _Event) -> _Slice:
    args: dict[str, Any] = {"depth": event.depth, "bound": _BOUNDS[event.outcome]}
    if event.outcome != ROOT_STOPPED:
        args["score"] = event.value
    if event.move:
        args["move"] = _move_name(event.move)
    return _Slice(_root_name(event.depth, event.helpers), event.begin, event.time, args)


def _life(event: _Event) -> _Slice:
    kind = _TYPE_NAMES[event.type]
    args = {
        **_node_args(event),
        "type": kind,
        "p_needed": _probability(event),
        "helpers": event.helpers,
        "outcome": _OUTCOMES[event.outcome],
    }
    begin = event.begin
    return _Slice(f"{kind} node", begin, max(begin, event.time), args)


class _WorkerTrack:
    """One worker's events, in the order of its log, as slices that follow each other."""

    def __init__(self) -> None:
        self._done: list[_Slice] = []
        self._now = _Slice("idle", 0, 0, {})
        self._run = 0
        """number of the slice with which the present uninterrupted search began"""

    def switch(self, at: int, name: str, args: dict[str, Any]) -> None:
        """The worker does something else from now on."""
        at = max(at, self._now.begin)
        self._now.end = at
        if at > self._now.begin or self._now.within or self._now.name == "join":
            self._done.append(self._now)
        if name != "search" or self._now.name != "search":
            self._run = len(self._done)
        self._now = _Slice(name, at, at, args)

    def add(self, event: _Event) -> None:
        """The next event of the log."""
        kind, at = event.kind, event.time
        if kind == TRACE_IDLE:
            self.switch(at, "idle", {})
        elif kind == TRACE_TAKE:
            self.switch(at, "search", _node_args(event))
        elif kind == TRACE_JOIN:
            args = {**_node_args(event), "move": _move_name(event.move)}
            self.switch(event.begin, "join", {**args, "p_needed": _probability(event)})
            self.switch(at, "search", args)
        elif kind == TRACE_ABORT:
            self._abort(event.begin, at, event)
        elif kind == TRACE_ROOT and event.frame != _MAIN_ROOT_FRAME:
            root = _root_slice(event)
            self._now.end = max(at, self._now.begin)
            self._now.part(root.begin, root.end, root.name, root.args)

    def _abort(self, begin: int, end: int, event: _Event) -> None:
        """Work thrown away: back to where the move was taken, but no further than this worker searched without pause.

        Another worker may have taken the move, or this one may have been idle and elsewhere since.
        """
        args = {**_node_args(event), "cause": "value came too late" if event.outcome else "unwound"}
        self._now.end = max(end, self._now.begin)
        for number in range(len(self._done) - 1, self._run - 1, -1):
            if self._done[number].end <= begin:
                break
            self._done[number].part(begin, end, "aborted work", args)
        self._now.part(begin, end, "aborted work", {**args, "nodes": event.value})

    def finish(self, end: int) -> Iterator[_Slice]:
        """All slices; the last one lasts until the search ended."""
        self.switch(end, "idle", {})
        yield from self._done


# -- the file --------------------------------------------------------------------------------------------------------


def _slice_events(pid: int, tid: int, slices: Iterator[_Slice]) -> Iterator[dict[str, Any]]:
    """Complete events, each before those within it."""
    for part in slices:
        ts, dur = part.begin / _NS_PER_US, (part.end - part.begin) / _NS_PER_US
        yield {"ph": "X", "name": part.name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": part.args}
        yield from _slice_events(pid, tid, iter(sorted(part.within, key=lambda inner: (inner.begin, -inner.end))))


def _process(pid: int, tid: int, name: str) -> Iterator[dict[str, Any]]:
    yield {"ph": "M", "name": "process_name", "pid": pid, "tid": tid, "ts": 0, "args": {"name": name}}
    yield {"ph": "M", "name": "process_sort_index", "pid": pid, "tid": tid, "ts": 0, "args": {"sort_index": pid}}


def _thread(pid: int, tid: int, name: str) -> Iterator[dict[str, Any]]:
    yield {"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "ts": 0, "args": {"name": name}}
    yield {"ph": "M", "name": "thread_sort_index", "pid": pid, "tid": tid, "ts": 0, "args": {"sort_index": tid}}


def _write(out: TextIO, facts: dict[str, Any], events: Iterator[dict[str, Any]]) -> None:
    """One event a line, so that the file can be read without a viewer, too."""
    encode = json.JSONEncoder(separators=(",", ":")).encode
    out.write(f'{{"displayTimeUnit":"ns","otherData":{encode(facts)},"traceEvents":[')
    separator = "\n"
    for event in events:
        out.write(separator + encode(event))
        separator = ",\n"
    out.write("\n]}\n")
