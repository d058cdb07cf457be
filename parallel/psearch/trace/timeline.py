"""What the events of a trace mean: slices of time, named, with arguments, one after the other on tracks."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import chess
import numpy as np

from psearch_core.chess.board.bridge import to_chess_move
from psearch_core.constants import BOUND_EXACT, BOUND_LOWER, BOUND_UPPER, CLOSED_ABORTED, CLOSED_CUTOFF, TYPE_NAMES
from psearch_core.records import (
    CERTAIN,
    MAX_PLY,
    ROOT_STOPPED,
    TRACE_ABORT,
    TRACE_IDLE,
    TRACE_JOIN,
    TRACE_ROOT,
    TRACE_TAKE,
    WORKER_BITS,
    trace_event_dtype,
)

MAIN_ROOT_FRAME = 0
UNFINISHED = -1
"""Outcome of an open node whose workers were killed."""
_OUTCOMES = {0: "exhausted", CLOSED_CUTOFF: "cutoff", CLOSED_ABORTED: "aborted", UNFINISHED: "unfinished"}
_BOUNDS = {BOUND_EXACT: "exact", BOUND_LOWER: "lower", BOUND_UPPER: "upper", ROOT_STOPPED: "stopped"}
_ANY_CASTLING = chess.Board(None, chess960=True)
"""Moves are written without a position at hand: castling as king takes rook."""
MoveName = Callable[[int], str]
"""A move of the search in words."""


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


@dataclass(slots=True)
class Slice:
    """Something that lasts, in nanoseconds from the start of the search, and what happened within it."""

    name: str
    begin: int
    end: int
    args: dict[str, Any]
    within: list[Slice] = field(default_factory=list)

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
        self.within.append(Slice(name, begin, end, args))


def split_name(number: int) -> str:
    """Name an open node: the worker that opened it, and how many it had opened by then."""
    return f"{number & (1 << WORKER_BITS) - 1}.{number >> WORKER_BITS}"


def chess_move_name(code: int) -> str:
    """Return a move of chess in UCI's words."""
    return to_chess_move(code, _ANY_CASTLING).uci()


def _node_args(event: Event) -> dict[str, Any]:
    """Return the arguments of the open node that an event is about."""
    if event.frame < 0:
        return {"split": "root", "ply": 0}
    return {
        "split": split_name(event.split),
        "depth": event.depth,
        "ply": event.frame % MAX_PLY,
    }


def _probability(event: Event) -> float:
    return round(event.p_needed / CERTAIN, 4)


def root_name(depth: int, better_lines: int) -> str:
    """Name a search of the root; better_lines: how many of several best moves were found before."""
    return f"depth {depth}, line {better_lines + 1}" if better_lines else f"depth {depth}"


def _root_slice(event: Event, move_name: MoveName) -> Slice:
    args: dict[str, Any] = {"depth": event.depth, "bound": _BOUNDS[event.outcome]}
    if event.outcome != ROOT_STOPPED:
        args["score"] = event.value
    if event.move:
        args["move"] = move_name(event.move)
    return Slice(root_name(event.depth, event.helpers), event.begin, event.time, args)


def life_slice(event: Event) -> Slice:
    """Return the slice from the opening of a node until the last worker has left it."""
    kind = TYPE_NAMES[event.type]
    args = {
        **_node_args(event),
        "type": kind,
        "p_needed": _probability(event),
        "helpers": event.helpers,
        "outcome": _OUTCOMES[event.outcome],
    }
    begin = event.begin
    return Slice(f"{kind} node", begin, max(begin, event.time), args)


def iteration_slices(roots: Iterable[Event], move_name: MoveName) -> Iterator[Slice]:
    """Yield the searches of the main root, given in the order of their beginnings; none begins before the last has
    ended."""
    since = 0
    for event in roots:
        part = _root_slice(event, move_name)
        part.begin = max(part.begin, since)
        since = part.end = max(part.begin, part.end)
        yield part


def on_lanes(slices: Iterable[Slice]) -> Iterator[tuple[int, Slice]]:
    """Yield each slice with the number of a lane on which nothing else lasts then; given in the order of their
    beginnings."""
    busy: list[tuple[int, int]] = []
    """end and lane"""
    free: list[int] = []
    for part in slices:
        while busy and busy[0][0] <= part.begin:
            heapq.heappush(free, heapq.heappop(busy)[1])
        lane = heapq.heappop(free) if free else len(busy)
        heapq.heappush(busy, (part.end, lane))
        yield lane, part


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
            self.switch(event.begin, "join", {**args, "p_needed": _probability(event)})
            self.switch(at, "search", args)
        elif kind == TRACE_ABORT:
            self._abort(event.begin, at, event)
        elif kind == TRACE_ROOT and event.frame != MAIN_ROOT_FRAME:
            root = _root_slice(event, self._move_name)
            self._now.end = max(at, self._now.begin)
            self._now.part(root.begin, root.end, root.name, root.args)

    def _abort(self, begin: int, end: int, event: Event) -> None:
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

    def finish(self, end: int) -> Iterator[Slice]:
        """Yield all slices; the last one lasts until the search ended."""
        self.switch(end, "idle", {})
        yield from self._done
