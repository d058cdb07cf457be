"""A trace of one search: what each worker did when, and the life of every node that was shared.

The workers write events into logs of bounded size (`scheduler/trace_log.py`); after the search the parent turns them
into slices of time (`timeline.py`) and writes those to a file (`trace_file.py`):

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
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from psearch.arena.arena import Arena
from psearch.results import PsearchError
from psearch.scheduler.scheduler_entries import read_cycles
from psearch.trace.timeline import (
    MAIN_ROOT_FRAME,
    UNFINISHED,
    MoveName,
    Slice,
    WorkerTrack,
    chess_move_name,
    each,
    iteration_slices,
    life_slice,
    on_lanes,
    root_name,
)
from psearch.trace.trace_file import (
    FIRST_SPLITS_TID,
    FIRST_WORKER_TID,
    ITERATIONS_TID,
    SEARCH_PID,
    SPLITS_PID,
    WORKERS_PID,
    TraceEvent,
    process,
    replacing,
    slice_events,
    thread,
    write_events,
)
from psearch.version import __version__
from psearch_core.constants import STACK_FREE
from psearch_core.records import MAX_PLY, TRACE_ROOT, TRACE_SPLIT, trace_event_dtype

_MOST_EVENTS = 1 << 21
_MOST_EVENTS_OF_A_WORKER = 1 << 18
_RING_EVENTS = 1 << 19
_RING_EVENTS_OF_A_WORKER = 1 << 12
_ITEMS_PER_LOOK = 1 << 10
"""Some milliseconds of work."""
_Item = TypeVar("_Item")

_TICKS_PER_NS = 1000


class Abandoned(Exception):
    """The trace that was being written is not wanted any more."""


def _always() -> bool:
    return True


def trace_capacity(workers: int) -> int:
    """Return events that fit into the log of each worker: 16 MiB of them at most, 128 MiB for all together."""
    return min(_MOST_EVENTS_OF_A_WORKER, _MOST_EVENTS // workers)


def ring_capacity(workers: int) -> int:
    """Return the capacity of a log where only what happened last is kept: 256 KiB of them at most, 32 MiB for all
    together."""
    return min(_RING_EVENTS_OF_A_WORKER, _RING_EVENTS // workers)


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
    """

    def __init__(self, arena: Arena, virtual: bool = False, ring: bool = False) -> None:
        if arena.trace_logs is None:
            raise PsearchError("this arena was made without room for a trace")
        self._arena = arena
        self._logs = arena.trace_logs
        self._virtual = virtual
        self._ring = ring
        self._number = -1
        self._start = 0
        self._start_ns = 0
        self._ns_per_cycle = 1.0
        self._end = 0
        """nanoseconds"""
        self._is_wanted = _always
        self._move_name: MoveName = chess_move_name

    def begin(self) -> None:
        """Begin before a search is handed to the workers: empty logs, and the clock at 0."""
        heads = self._logs["head"]
        for name in ("count", "dropped", "dropped_from"):
            heads[name] = 0
        heads["ring"] = int(self._ring)
        heads["clock"] = 0 if self._virtual else -1
        self._start_ns = time.perf_counter_ns()
        self._start = 0 if self._virtual else int(read_cycles())
        self._number += 1

    @property
    def arena(self) -> Arena:
        """What it records in."""
        return self._arena

    @property
    def start(self) -> TraceStart:
        """When the present recording, or the last one, began."""
        return TraceStart(self._number, self._start, self._start_ns)

    @property
    def is_virtual(self) -> bool:
        """Whether times are those of virtual workers, in ticks."""
        return self._virtual

    def end(self, now: int = 0) -> None:
        """End when no worker searches any more; now: virtual time, in ticks."""
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

    def write(
        self,
        path: Path,
        facts: dict[str, Any],
        is_wanted: Callable[[], bool] = _always,
        move_name: MoveName | None = None,
    ) -> None:
        """Write the trace of the last search; facts about it go into the file. OSError when that fails.

        move_name: of a game's moves; None: they are of chess.

        A file that is there already is replaced when the new one is complete. A full log takes seconds: `is_wanted` is
        called now and then, and when it returns False `Abandoned` is raised and what is there stays.
        """
        if self._ring:
            raise PsearchError("only what happened last was recorded: that is no trace")
        self._is_wanted, self._move_name = is_wanted, move_name or chess_move_name
        with replacing(path) as out:
            write_events(out, self._facts(facts), self._while_wanted(self._trace_events()))

    def slices_of(self, worker: int) -> Iterator[Slice]:
        """Return what one worker did in the last search: slices that fill its time, and within them work thrown
        away."""
        return self._track(worker, self._events(worker))

    def iterations(self) -> list[Slice]:
        """Return the searches of the root, one after the other."""
        events = [self._events(worker) for worker in range(self._arena.workers)]
        found = [of_one[(of_one["kind"] == TRACE_ROOT) & (of_one["frame"] == MAIN_ROOT_FRAME)] for of_one in events]
        return list(self._iterations(np.concatenate(found)))

    def lives(self) -> list[Slice]:
        """Return each open node that a helper joined, from its opening until the last one had left it."""
        events = [self._events(worker) for worker in range(self._arena.workers)]
        found = np.concatenate([of_one[of_one["kind"] == TRACE_SPLIT] for of_one in events])
        return [life_slice(event) for event in each(found)]

    @property
    def end_ns(self) -> int:
        """How long the last search took, nanoseconds."""
        return self._end

    def _facts(self, facts: dict[str, Any]) -> dict[str, Any]:
        return {
            "psearch": __version__,
            **facts,
            "clock": "virtual" if self._virtual else "real",
            "workers": self._arena.workers,
            "finished": bool(self._arena.header[0]["done"]),
            "dropped_events": sum(self.dropped.values()),
        }

    def _trace_events(self) -> Iterator[TraceEvent]:
        lives: list[np.ndarray] = []
        roots: list[np.ndarray] = []
        name = "workers (virtual time)" if self._virtual else "workers"
        yield from process(WORKERS_PID, FIRST_WORKER_TID, name)
        for worker in range(self._arena.workers):
            events = self._events(worker)
            lives.append(events[events["kind"] == TRACE_SPLIT])
            roots.append(events[(events["kind"] == TRACE_ROOT) & (events["frame"] == MAIN_ROOT_FRAME)])
            tid = FIRST_WORKER_TID + worker
            yield from thread(WORKERS_PID, tid, f"worker {worker}")
            yield from slice_events(WORKERS_PID, tid, self._track(worker, events))
        yield from process(SEARCH_PID, ITERATIONS_TID, "search")
        yield from thread(SEARCH_PID, ITERATIONS_TID, "iterations")
        yield from slice_events(SEARCH_PID, ITERATIONS_TID, self._iterations(np.concatenate(roots)))
        yield from process(SPLITS_PID, FIRST_SPLITS_TID, "split points")
        yield from self._split_points(np.concatenate(lives))

    def _while_wanted(self, items: Iterator[_Item]) -> Iterator[_Item]:
        for number, item in enumerate(items):
            if number % _ITEMS_PER_LOOK == 0 and not self._is_wanted():
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

    def _track(self, worker: int, events: np.ndarray) -> Iterator[Slice]:
        head = self._logs[worker]["head"]
        track = WorkerTrack(self._move_name)
        for event in self._while_wanted(each(events)):
            track.add(event)
        if head["dropped"]:
            since = self._times(np.array([head["dropped_from"]]))[0]
            track.switch(int(since), "not recorded", {"events": int(head["dropped"])})
        return track.finish(self._end)

    def _iterations(self, roots: np.ndarray) -> Iterator[Slice]:
        """The searches of the main root; the one under way when the workers were killed comes last."""
        last_end = 0
        in_order = roots[np.lexsort((roots["time"], roots["begin"]))]
        for part in iteration_slices(each(in_order), self._move_name):
            last_end = part.end
            yield part
        if not self._arena.header[0]["done"]:
            entered = int(self._times(self._arena.frames["trace"]["entered"][:1])[0])
            root = self._arena.stack[0]
            depth = int(root["root_depth"])
            name = root_name(depth, int(root["root_line"]))
            yield Slice(name, max(last_end, entered), self._end, {"depth": depth, "bound": "unfinished"})

    def _split_points(self, lives: np.ndarray) -> Iterator[TraceEvent]:
        """Every life on the first track that is free."""
        if not self._arena.header[0]["done"]:
            lives = np.concatenate([lives, self._open_nodes(set(lives["split"].tolist()))])
        lives = lives[np.lexsort((lives["split"], lives["begin"]))]
        lanes = 0
        for lane, life in on_lanes(map(life_slice, each(lives))):
            if lane == lanes:
                lanes += 1
                yield from thread(SPLITS_PID, FIRST_SPLITS_TID + lane, f"split points {lanes}")
            yield from slice_events(SPLITS_PID, FIRST_SPLITS_TID + lane, iter([life]))

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
                for name, field in (("depth", "depth"), ("type", "split_type"), ("p_needed", "p_needed")):
                    life[name] = node[field]
                life["helpers"], life["outcome"] = node["joined"], UNFINISHED
                found.append(life)
        return np.concatenate([np.zeros(0, trace_event_dtype), *found])
