"""What the workers of one search report, as `Info`s and in the end as the `Result`."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import starmap, zip_longest

import chess
import chess.engine
import numpy as np

from psearch.arena.arena import Arena
from psearch.arena.setup import Progress, Subject
from psearch.arena.shared_results import InfoRing
from psearch.processes.result_words import words_of
from psearch.results import Info, Result, WorkerStats
from psearch_core.constants import BOUND_EXACT, BOUND_LOWER, BOUND_UPPER, MATE, MATE_IN_MAX_PLY

BOUND_NAMES = {BOUND_EXACT: "exact", BOUND_LOWER: "lower", BOUND_UPPER: "upper"}


_COUNTS = ("splits", "joins", "aborted_nodes")
"""Of the counters: what `WorkerStats` has between nodes and idle share, in its order."""
_NOTHING = WorkerStats(0, 0, 0, 0, 0.0)


def _added(earlier: WorkerStats, present: WorkerStats) -> WorkerStats:
    """Two workers of one number; the idle share is that of the later one, if there is one."""
    return WorkerStats(
        nodes=earlier.nodes + present.nodes,
        splits=earlier.splits + present.splits,
        joins=earlier.joins + present.joins,
        aborted_nodes=earlier.aborted_nodes + present.aborted_nodes,
        idle_share=earlier.idle_share if present is _NOTHING else present.idle_share,
    )


class Reports:
    """The reports of a search, from one arena or, where workers are replaced, from several one after the other.

    The search is set up in the first arena. since: when it began, on `time.perf_counter`. With several lines those of a
    depth are shown together.
    """

    def __init__(self, arena: Arena, board: chess.Board | Subject, since: float) -> None:
        self.arena = arena
        self.words = words_of(board)
        self.since = since
        self.wanted_lines = int(arena.header[0]["multipv"])
        self.latest = Info(0, 0, self.words.score(0), "exact", 0, 0.0)
        """of the best line"""
        self.finished: list[Info] = []
        """the lines of the last depth that was finished, best first"""
        self._earlier: list[WorkerStats] = []
        """of the workers that have been replaced, added up"""
        self._earlier_nodes = 0
        self._lines: list[Info] = []
        """the last that were shown together"""
        self._new_lines: list[Info] = []
        """of the depth under way"""
        self._known: dict[chess.Move, list[chess.Move]] = {}
        """the last line that was complete, by its first move"""
        self._ring = InfoRing(arena)
        self._most_nodes = 0

    @property
    def elapsed_s(self) -> float:
        """Seconds since the search began."""
        return time.perf_counter() - self.since

    @property
    def has_answer(self) -> bool:
        """Whether the first iteration has ended, with all its lines."""
        return self.latest.depth > 0 and (self.wanted_lines == 1 or bool(self._lines))

    def totals(self) -> list[WorkerStats]:
        """Return what the workers have done up to now, for `go_on`."""
        return self._worker_stats()

    def go_on(self, arena: Arena, totals: list[WorkerStats]) -> None:
        """Go on with the search in another arena. All reports of the one before have been read; it may be closed."""
        self._earlier = totals
        self._earlier_nodes = sum(worker.nodes for worker in totals)
        self.arena = arena
        self._ring = InfoRing(arena)
        self._new_lines = []

    def read(self) -> Iterator[Info]:
        """Yield what is new in the ring."""
        records = self._ring.unread()
        if not records:
            return
        now_s, workers, hashfull = self.elapsed_s, self._worker_stats(), self.arena.fill_permille()
        for record in records:
            info = Info(
                depth=record.depth,
                seldepth=record.seldepth,
                score=self.words.score(record.score, record.bound),
                bound=BOUND_NAMES[record.bound],
                nodes=self._never_less(self._earlier_nodes + record.nodes),
                time_s=now_s,
                pv=[self.words.move(code) for code in record.pv],
                workers=workers,
                multipv=record.line + 1,
                hashfull=hashfull,
            )
            yield self._with_line(info, abs(record.score) >= MATE_IN_MAX_PLY)

    def complete(self, info: Info) -> list[Info]:
        """Take one that was read, and return what can be shown now: it, all lines of its depth from the best, or
        nothing while lines are missing or when nothing is new. Of several lines only exact values count."""
        if self.wanted_lines == 1:
            if self._is_known_mate(info):
                return []
            self._lines = [info]
        else:
            if info.bound != "exact":
                return []
            if info.multipv == 1:
                self._new_lines = []
            self._new_lines.append(info)
            if len(self._new_lines) < self.wanted_lines:
                return []
            self._lines = sorted_lines(self._new_lines)
            self._new_lines = []
        self.latest = self._lines[0]
        if info.bound == "exact":
            self.finished = self._lines
        return self._lines

    def _is_known_mate(self, info: Info) -> bool:
        """Whether a bound adds nothing to the mate that the last iteration has found: the next one was stopped after
        the same move."""
        if info.bound != "lower" or not self.finished:
            return False
        known = self.finished[0]
        return known.score.is_mate() and info.pv[0] == known.pv[0] and info.score.relative <= known.score.relative

    def now(self) -> Info:
        """Return the latest report with present counters."""
        currmove, number = self._current_move()
        return replace(
            self.latest,
            seldepth=max(self.latest.seldepth, int(self.arena.worker["counters"]["seldepth"].max())),
            nodes=self._never_less(self._earlier_nodes + int(self.arena.worker["nodes"].sum())),
            time_s=self.elapsed_s,
            workers=self._worker_stats(),
            hashfull=self.arena.fill_permille(),
            is_live=True,
            currmove=currmove,
            currmovenumber=number,
        )

    def progress(self) -> Progress | None:
        """Return from where the search can go on with other workers; None: from the beginning."""
        if not self.finished:
            return None
        best = [] if not self.latest.pv or self.wanted_lines > 1 else [self.latest.pv[0]]
        return Progress(
            depth=self.finished[0].depth,
            moves=[*best, *(line.pv[0] for line in self.finished)],
            scores=[centipawns(line.score) for line in self.finished],
        )

    def table_move(self) -> chess.Move | None:
        """Return the move that the table has for the root, if it is one to choose from."""
        line = self.words.whole_line(self.arena, replace(self.latest, pv=[]), ())
        header = self.arena.header[0]
        moves = map(self.words.move, header["root_moves"][: header["root_count"]].tolist())
        return line[0] if line and line[0] in moves else None

    def result(self, interrupted: bool, notes: Sequence[str] = ()) -> Result:
        """Return the answer as it stands."""
        best = self.words.move(int(self.arena.header[0]["best_move"]))
        lines = self._lines or sorted_lines(self._new_lines)  # stopped before all lines had their first depth
        if self.wanted_lines > 1 and lines:
            self.latest = lines[0]
        if self.latest.pv:
            # the last report's own move: an early answer is put together while workers go on
            best = self.latest.pv[0]
        elif self.latest.depth == 0:  # ended by a limit before the first report
            self.latest = replace(self.latest, score=self.words.static_score(self.arena))
            best = self.table_move() or best
        info = self._whole(replace(self.now(), is_live=False, pv=self.latest.pv or [best]))
        others = [
            self._whole(
                replace(line, nodes=info.nodes, time_s=info.time_s, hashfull=info.hashfull, workers=info.workers)
            )
            for line in lines[1:]
        ]
        return Result(best, info, interrupted, [info, *others], list(notes))

    def _never_less(self, nodes: int) -> int:
        """A report waits in the ring while the live count goes on: what is shown does not go back."""
        self._most_nodes = max(self._most_nodes, nodes)
        return self._most_nodes

    def _with_line(self, info: Info, is_mate: bool) -> Info:
        """A report with its line; of a move that missed the window the last line that began with it, or what the table
        says next."""
        first = info.pv[0]
        if info.bound == "exact" and len(info.pv) == 1 and self.arena.header[0]["options"]["null_windows"]:
            info = replace(info, pv=self.words.whole_line(self.arena, info, ()))  # null windows give moves, no lines
        if info.bound == "exact" or len(info.pv) > 1:
            self._known[first] = info.pv
            return info
        known = self._known.get(first, [])
        if len(known) < 2 or is_mate:  # of a mate: the line before led elsewhere
            known = self.words.whole_line(self.arena, info, ())
        return replace(info, pv=known)

    def _whole(self, info: Info) -> Info:
        """With all that is known of the line."""
        return replace(info, pv=self.words.whole_line(self.arena, info, self._known.get(info.pv[0], ())))

    def _worker_stats(self) -> list[WorkerStats]:
        """Return the figures of the present workers; what those before them did is added by number."""
        counters = self.arena.worker["counters"]
        idle_shares = counters["idle_cycles"] / np.maximum(counters["search_cycles"], 1)
        columns = self.arena.worker["nodes"], *(counters[name] for name in _COUNTS), idle_shares
        present = [WorkerStats(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]
        return (
            list(starmap(_added, zip_longest(self._earlier, present, fillvalue=_NOTHING))) if self._earlier else present
        )

    def _current_move(self) -> tuple[chess.Move | None, int]:
        """What the worker at the main root is searching. Read while it writes, so it may be just over."""
        visit = self.arena.frames[0]["visit"]
        move = self.words.move(int(visit["move"]))
        if not self.words.is_legal(move):
            return None, 0
        return move, int(visit["index"]) + int(self.arena.stack[0]["root_line"]) + 1


def centipawns(score: chess.engine.PovScore) -> int:
    """Return centipawns for the side to move, mates as the search counts them in plies: what `to_score` was given."""
    moves = score.relative.mate()
    if moves is not None:
        return MATE - (2 * moves - 1) if moves > 0 else -(MATE + 2 * moves)
    value = score.relative.score()
    if value is None:
        raise AssertionError("a score is centipawns or a mate")
    return value


def sorted_lines(lines: Sequence[Info]) -> list[Info]:
    """Return the lines of one depth, numbered from the best."""
    ranked = sorted(lines, key=lambda line: line.score.relative, reverse=True)
    return [replace(line, multipv=number) for number, line in enumerate(ranked, start=1)]
