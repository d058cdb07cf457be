"""Samples a running search. Twenty looks a second do not measurably slow it down (docs/design/processes.md).

    with psearch.Engine(threads=2, watched=True) as engine, engine.analysis(board):
        watcher = Watcher(engine)
        while ...:
            snapshot = watcher.look()

A snapshot is plain data of bounded size for any number of workers.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from psearch.arena.arena import Arena
from psearch.defaults import POLICY_NAMES
from psearch.lab.watching.node_lines import NodeLine, NodeLines, chess_lines
from psearch.lab.watching.open_nodes import Memory, read_open_nodes, score_or_none
from psearch.lab.watching.tracks import IDLE, SEARCH, Clock, Track, packed
from psearch.scheduler.scheduler_entries import read_cycles
from psearch.trace.recorder import BOUNDS, OUTCOMES, Event, Recorder, split_name
from psearch_core.constants import BOUND_EXACT, STATE_IDLE, TYPE_NAMES
from psearch_core.records import INFO_RING, MAX_PLY, TRACE_ABORT, TRACE_ROOT
from psearch_core.toolchain.kernel_sets import STANDARD

MOST_TRACKS = 64
"""Most workers with a track in a snapshot; of the others it has only the load."""
MOST_EVENTS = 16
"""Most events of a snapshot; the iterations, then those with the most nodes lost and the most helpers."""
_MOST_LOSSES = 4096
"""Most open nodes whose losses are kept until they close."""
_LEAST_CALIBRATION_NS = 1_000_000
"""Least time of a search after which its two clocks are compared, in nanoseconds."""
_TICKS_PER_US = 1_000_000
"""Ticks of virtual time per microsecond."""
_COUNTED = ("splits", "joins", "aborts", "aborted_nodes", "idle_cycles", "search_cycles")
"""Counters of the workers that a snapshot sums up, besides `nodes`."""
LinesOf = Callable[[np.ndarray], NodeLines | None]
"""Makes the lines from the record of a root; None while the root is unknown."""


class Watched(Protocol):
    """Describes what can be watched: an engine made with `watched`, or a group of workers."""

    def _recorder(self) -> Recorder | None:
        """Return the recorder of the present workers; None without workers."""


class Watcher:
    """Samples the searches of a watched engine, in one thread at a time. lines_of: makes lines of the game."""

    def __init__(self, engine: Watched, lines_of: LinesOf = chess_lines) -> None:
        self._engine = engine
        self._lines_of = lines_of
        self._search: WatchedSearch | None = None

    def look(self, first: int = 0, with_nodes: bool = True) -> dict[str, Any] | None:
        """Return a snapshot; None while there are no workers.

        first: first of the 64 workers whose tracks are wanted; with_nodes: include the open nodes, which take most of
        the time of a look, and change too fast to read.
        """
        recorder = self._engine._recorder()
        if recorder is None:
            self._search = None
            return None
        if self._search is None or (recorder, recorder.start) != (self._search.recorder, self._search.start):
            self._search = WatchedSearch(recorder, self._lines_of)
        try:
            return self._search.look(first, with_nodes)
        except AttributeError:  # the arena has just been closed or replaced
            self._search = None
            return None


class WatchedSearch:
    """Follows one search from look to look. Raises AttributeError if its memory is released meanwhile."""

    def __init__(self, recorder: Recorder, lines_of: LinesOf = chess_lines, budget_s: float | None = None) -> None:
        """Begin with a search. budget_s: CPU time of a look for checking lines, in seconds; None: the default."""
        self.recorder = recorder
        self._budget_s = budget_s
        self._lost: dict[int, int] = {}
        """Nodes searched in vain below each open node, by split number."""
        self._line: tuple[int, dict[str, Any] | None, int] = 0, None, 0
        """Number of reports that were seen, the best line of them, and its score."""
        self._lines_of = lines_of
        self.start = recorder.start
        self._tracks: dict[int, Track] = {}
        self._known: dict[int, NodeLine] = {}
        """Lines of the open nodes of the last look, by split number."""
        self._lines: NodeLines | None = None
        self._root = b""
        self._before: dict[str, np.ndarray] = {}
        self._last_us = 0

    def look(self, first: int = 0, with_nodes: bool = True, virtual_now: int = 0) -> dict[str, Any]:
        """Return a snapshot, like `Watcher.look`. virtual_now: the time in ticks for searches in virtual time."""
        arena = self.recorder.arena
        worker, header = arena.worker, arena.header[0]
        is_done = bool(header["done"])  # read once, before the nodes
        clock, now = self._clock(virtual_now)
        root = arena.header["root"].copy()
        if root.tobytes() != self._root:  # the root is written after the recording has begun
            self._lines, self._known, self._root = self._lines_of(root), {}, root.tobytes()
        counters = {name: worker["counters"][name].astype(np.int64) for name in _COUNTED}
        counters["nodes"] = worker["nodes"].astype(np.int64)
        busy = (worker["stack"] >= 0) & (worker["state"] != STATE_IDLE)
        first = min(max(first, 0), max(0, arena.workers - MOST_TRACKS))
        tracks = self._look_at_tracks(arena, clock, now, busy, counters["nodes"], first)
        events = self._events(clock)
        seen: dict[str, Any] = {"nodes": None, "hidden": None, "first_moves": None}
        if with_nodes or is_done:
            seen = {"nodes": [], "hidden": 0, "first_moves": []}
            if self._lines is not None and not is_done:  # a finished search has no open nodes
                memory = Memory(arena)
                seen["nodes"], seen["hidden"], self._known = read_open_nodes(memory, self._lines, self._budget_s)
                seen["first_moves"] = self._first_moves(memory, self._lines)
        snapshot = {
            "search": self.start.number,
            "begin": self._last_us,
            "now": now,
            "workers": arena.workers,
            "first": first,
            "tracks": tracks,
            "events": events,
            "line": self._best_line(),
            "load": self._load(counters, busy),
            "counters": {name: int(found.sum()) for name, found in counters.items()},
            "idle": round(1 - float(busy.mean()), 4),
            "done": is_done,
            "depth": int(header["depth"]),
            "fen": None if self._lines is None else self._lines.root.fen,
            **_how(arena),
            **seen,
        }
        self._before = counters
        self._last_us = now
        return snapshot

    def _clock(self, virtual_now: int) -> tuple[Clock, int]:
        if self.recorder.is_virtual:
            return Clock(0, 1 / _TICKS_PER_US), virtual_now // _TICKS_PER_US
        ns = max(time.perf_counter_ns() - self.start.ns, _LEAST_CALIBRATION_NS)
        ticks = max(int(read_cycles()) - self.start.ticks, 1)
        return Clock(self.start.ticks, ns / ticks / 1000), ns // 1000

    def _look_at_tracks(
        self, arena: Arena, clock: Clock, now: int, busy: np.ndarray, nodes: np.ndarray, first: int
    ) -> list[list[list[int | str]]]:
        logs = arena.trace_logs
        assert logs is not None  # a recorder implies logs
        tracks, found = {}, []
        for worker in range(first, min(first + MOST_TRACKS, len(logs))):
            log, searched = logs[worker : worker + 1], int(nodes[worker])
            track = self._tracks.get(worker)
            if track is None and self._last_us == 0:  # the first look starts at the beginning
                track = Track()
            elif track is None:
                kind = SEARCH if busy[worker] else IDLE
                track = Track(int(log["head"]["count"][0]), kind, self._last_us, searched)
            tracks[worker] = track
            found.append(packed(track.look(log, clock, now, searched)))
        self._tracks = tracks
        return found

    def _events(self, clock: Clock) -> list[dict[str, Any]]:
        """Return what ended since the last look: iterations, and open nodes that had helpers, with the cause."""
        noted = [(worker, event) for worker, track in self._tracks.items() for event in track.noted]
        for _, event in noted:
            if event.kind == TRACE_ABORT:
                self._lost[event.split] = self._lost.get(event.split, 0) + event.value
        found = [self._event(worker, event, clock) for worker, event in noted if event.kind != TRACE_ABORT]
        if len(self._lost) > _MOST_LOSSES:
            self._lost.clear()
        found.sort(key=lambda one: (one["kind"] == "depth", one.get("lost", 0), one.get("helpers", 0)), reverse=True)
        return sorted(found[:MOST_EVENTS], key=lambda one: one["at"])

    def _event(self, worker: int, event: Event, clock: Clock) -> dict[str, Any]:
        lines = self._lines
        facts: dict[str, Any] = {"at": clock.microseconds(event.time), "worker": worker, "depth": event.depth}
        is_root = event.kind == TRACE_ROOT
        known = None if lines is None else lines.root if is_root else self._known.get(event.split)
        move = None if known is None else known.named(event.move)
        facts |= {"by": None if move is None else move[1], "value": score_or_none(event.value)}
        if is_root:
            return {"kind": "depth", **facts, "bound": BOUNDS[event.outcome], "main": event.frame == 0}
        return {
            "kind": "closed",
            **facts,
            "id": split_name(event.split),
            "type": TYPE_NAMES[event.type],
            "words": None if known is None else list(known.words),
            "outcome": OUTCOMES[event.outcome],
            "helpers": event.helpers,
            "lost": self._lost.pop(event.split, 0),
        }

    def _best_line(self) -> dict[str, Any] | None:
        """Return the best line so far, of several with MultiPV: depth, bound, score, and moves in SAN."""
        header = self.recorder.arena.header[0]
        count = int(header["info_count"])
        seen, facts, score = self._line
        best = None
        for number in range(max(seen, count - INFO_RING), count):
            report = header["infos"][number % INFO_RING]
            # a further line may turn out to be better than the first one of its depth
            is_better = int(report["bound"]) == BOUND_EXACT and int(report["score"]) > score
            if report["line"] == 0 or is_better:
                best, score = report, int(report["score"])
        if best is not None and self._lines is not None:
            line = self._lines.line(tuple(best["pv"][: min(max(int(best["pv_length"]), 0), MAX_PLY)].tolist()))
            facts = {"depth": int(best["depth"]), "bound": BOUNDS.get(int(best["bound"]), "")}
            facts |= {"score": score_or_none(score), "words": [] if line is None else list(line.words)}
            self._line = count, facts, score
        return facts

    @staticmethod
    def _first_moves(memory: Memory, lines: NodeLines) -> list[list[int | str]]:
        """Return the root move that each worker searches, in both notations; at most `MOST_TRACKS` workers."""
        found = memory.first_moves()[:MOST_TRACKS]
        return [[worker, *name] for worker, code in found if (name := lines.root.named(code)) is not None]

    def _load(self, counters: dict[str, np.ndarray], busy: np.ndarray) -> str:
        """Return a hexadecimal digit per worker: its load since the last look, where its own counters tell."""
        shares = busy.astype(float)
        if self._before and len(self._before["search_cycles"]) == len(busy):
            spent = counters["search_cycles"] - self._before["search_cycles"]
            idle = counters["idle_cycles"] - self._before["idle_cycles"]
            known = spent > 0
            shares[known] = 1 - np.clip(idle[known] / spent[known], 0, 1)
        return "".join(f"{round(share * 15):x}" for share in shares.tolist())


def _how(arena: Arena) -> dict[str, str]:
    """Return policy and driver of the search; nothing if a user's file decides."""
    if arena.kernels != STANDARD:
        return {}
    options = arena.header[0]["options"]
    return {"policy": POLICY_NAMES[int(options["policy"])], "driver": "null" if options["null_windows"] else "pvs"}
