"""Conversion of the workers' reports to `Info`s and to the `Result`: scores, moves and lines, of any game."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import starmap, zip_longest
from typing import Any

import chess
import chess.engine
import numpy as np

from psearch.arena.arena import Arena
from psearch.arena.setup import Progress, Subject
from psearch.arena.shared_results import InfoRing
from psearch.processes.line_completion import whole_line
from psearch.results import WON_CP, Info, Result, WorkerStats
from psearch_core.chess.board.bridge import to_chess_move
from psearch_core.chess.chess_entries import evaluate_position
from psearch_core.constants import BOUND_EXACT, BOUND_LOWER, BOUND_UPPER, MATE, MATE_IN_MAX_PLY
from psearch_core.records import evaluation_dtype

BOUND_NAMES = {BOUND_EXACT: "exact", BOUND_LOWER: "lower", BOUND_UPPER: "upper"}
_COUNTS = ("splits", "joins", "aborted_nodes")
"""Counters of a worker that follow the nodes in `WorkerStats`, in its order."""
_NOTHING = WorkerStats(0, 0, 0, 0, 0.0)


def to_score(value: int, turn: chess.Color, bound: int = BOUND_EXACT) -> chess.engine.PovScore:
    """Return a search value as centipawns or a mate distance for the side to move.

    A bound with a mate score proves only who wins: its distance is often far too long, so it becomes a won score.
    """
    if bound == (BOUND_LOWER if value > 0 else BOUND_UPPER) and abs(value) >= MATE_IN_MAX_PLY:
        value = WON_CP if value > 0 else -WON_CP
    if abs(value) < MATE_IN_MAX_PLY:
        return chess.engine.PovScore(chess.engine.Cp(value), turn)
    moves = (MATE - abs(value) + 1) // 2
    return chess.engine.PovScore(chess.engine.Mate(moves if value > 0 else -moves), turn)


def centipawns(score: chess.engine.PovScore) -> int:
    """Return the search value of a score, in centipawns or for a mate in plies: the inverse of `to_score`."""
    moves = score.relative.mate()
    if moves is not None:
        return MATE - (2 * moves - 1) if moves > 0 else -(MATE + 2 * moves)
    value = score.relative.score()
    if value is None:
        raise AssertionError("a score is centipawns or a mate")
    return value


def sorted_lines(lines: Sequence[Info]) -> list[Info]:
    """Return the lines of one depth, the best first, and numbered so."""
    ranked = sorted(lines, key=lambda line: line.score.relative, reverse=True)
    return [replace(line, multipv=number) for number, line in enumerate(ranked, start=1)]


def _added(earlier: WorkerStats, present: WorkerStats) -> WorkerStats:
    """Add the counters of two successive workers with one index; the idle share is that of the later one."""
    return WorkerStats(
        nodes=earlier.nodes + present.nodes,
        splits=earlier.splits + present.splits,
        joins=earlier.joins + present.joins,
        aborted_nodes=earlier.aborted_nodes + present.aborted_nodes,
        idle_share=earlier.idle_share if present is _NOTHING else present.idle_share,
    )


class Reports:
    """The reports of a search, read from its arena, and from a new one after each replacement of the workers.

    The search must be set up. since: its start on `time.perf_counter`. All lines of a depth are shown together.
    """

    def __init__(self, arena: Arena, board: chess.Board | Subject, since: float) -> None:
        self.arena = arena
        self._board = board
        self.since = since
        self.wanted_lines = int(arena.header[0]["multipv"])
        self.latest = Info(0, 0, self._score(0), "exact", 0, 0.0)
        """Latest report of the best line."""
        self.finished: list[Info] = []
        """Lines of the last finished depth, the best first."""
        self.share: float | None = None
        """Share of the root's nodes that were searched below the move of the last report read; None: unknown."""
        self._earlier: list[WorkerStats] = []
        """Sums over the workers that have been replaced, by index."""
        self._earlier_nodes = 0
        self._lines: list[Info] = []
        """Lines that were last shown together."""
        self._new_lines: list[Info] = []
        """Lines of the current depth."""
        self._known: dict[chess.Move, list[chess.Move]] = {}
        """Last complete line for each first move."""
        self._ring = InfoRing(arena)
        self._most_nodes = 0

    @property
    def elapsed_s(self) -> float:
        """Seconds since the search began."""
        return time.perf_counter() - self.since

    @property
    def has_answer(self) -> bool:
        """Whether the first iteration has finished, with all its lines."""
        return self.latest.depth > 0 and (self.wanted_lines == 1 or bool(self._lines))

    def worker_stats(self) -> list[WorkerStats]:
        """Return the counters of each worker up to now, including those of replaced workers with the same index."""
        counters = self.arena.worker["counters"]
        idle_shares = counters["idle_cycles"] / np.maximum(counters["search_cycles"], 1)
        columns = self.arena.worker["nodes"], *(counters[name] for name in _COUNTS), idle_shares
        present = [WorkerStats(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]
        if not self._earlier:
            return present
        return list(starmap(_added, zip_longest(self._earlier, present, fillvalue=_NOTHING)))

    def continue_in(self, arena: Arena, totals: list[WorkerStats]) -> None:
        """Read from another arena from now on, after all reports of the one before were read; that may be closed."""
        self._earlier = totals
        self._earlier_nodes = sum(worker.nodes for worker in totals)
        self.arena = arena
        self._ring = InfoRing(arena)
        self._new_lines = []

    def read(self) -> Iterator[Info]:
        """Yield the new reports."""
        records = self._ring.unread()
        if not records:
            return
        now_s, workers, hashfull = self.elapsed_s, self.worker_stats(), self.arena.fill_permille()
        for record in records:
            info = Info(
                depth=record.depth,
                seldepth=record.seldepth,
                score=self._score(record.score, record.bound),
                bound=BOUND_NAMES[record.bound],
                nodes=self._never_less(self._earlier_nodes + record.nodes),
                time_s=now_s,
                pv=[self._move(code) for code in record.pv],
                workers=workers,
                multipv=record.line + 1,
                hashfull=hashfull,
            )
            self.share = record.share / 1000 if record.share >= 0 else None
            yield self._with_line(info, abs(record.score) >= MATE_IN_MAX_PLY)

    def complete(self, info: Info) -> list[Info]:
        """Take a report and return what can be shown now: the report, unless it has no news; with several lines all of
        its depth, when they are complete. Of several lines only exact values count."""
        if self.wanted_lines == 1:
            if info.bound == "lower" and self.finished:
                known = self.finished[0]
                if known.score.is_mate() and info.pv[0] == known.pv[0] and info.score.relative <= known.score.relative:
                    return []  # no news: the next iteration was stopped after the same move
            self._lines = [info]
        else:
            if info.bound != "exact":
                return []
            if info.multipv == 1:
                self._new_lines = []
            elif info.multipv != len(self._new_lines) + 1 or info.depth != self._new_lines[0].depth:
                self._new_lines = []
                return []  # lines before it were overwritten, unread: wait for the next whole depth
            self._new_lines.append(info)
            if len(self._new_lines) < self.wanted_lines:
                return []
            self._lines = sorted_lines(self._new_lines)
            self._new_lines = []
        self.latest = self._lines[0]
        if info.bound == "exact":
            self.finished = self._lines
        return self._lines

    def now(self) -> Info:
        """Return the latest report with live counters."""
        visit = self.arena.frames[0]["visit"]  # the worker at the main root may be writing it: check the move
        move, board = self._move(int(visit["move"])), self._board
        is_legal = move in (board.legal_moves if isinstance(board, chess.Board) else board.root_moves())
        return replace(
            self.latest,
            seldepth=max(self.latest.seldepth, int(self.arena.worker["counters"]["seldepth"].max())),
            nodes=self._never_less(self._earlier_nodes + int(self.arena.worker["nodes"].sum())),
            time_s=self.elapsed_s,
            workers=self.worker_stats(),
            hashfull=self.arena.fill_permille(),
            is_live=True,
            currmove=move if is_legal else None,
            currmovenumber=int(visit["index"]) + int(self.arena.stack[0]["root_line"]) + 1 if is_legal else 0,
        )

    def progress(self) -> Progress | None:
        """Return the state from which other workers can continue; None: they must start from the beginning."""
        if not self.finished:
            return None
        best = [] if not self.latest.pv or self.wanted_lines > 1 else [self.latest.pv[0]]
        return Progress(
            depth=self.finished[0].depth,
            moves=[*best, *(line.pv[0] for line in self.finished)],
            scores=[centipawns(line.score) for line in self.finished],
        )

    def table_move(self) -> chess.Move | None:
        """Return the table's move for the root, if it is one to choose from."""
        line = self._whole_line(replace(self.latest, pv=[]), ())
        header = self.arena.header[0]
        moves = map(self._move, header["root_moves"][: header["root_count"]].tolist())
        return line[0] if line and line[0] in moves else None

    def result(self, interrupted: bool, notes: Sequence[str] = ()) -> Result:
        """Return the result as it stands now."""
        best = self._move(int(self.arena.header[0]["best_move"]))
        lines = self._lines or sorted_lines(self._new_lines)  # stopped before all lines had their first depth
        if self.wanted_lines > 1 and lines:
            self.latest = lines[0]
        if self.latest.pv:
            # move and line of one report: workers may still be running and change the header
            best = self.latest.pv[0]
        elif self.latest.depth == 0:  # ended by a limit before the first report
            self.latest = replace(self.latest, score=self._static_score())
            best = self.table_move() or best
        info = self._whole(replace(self.now(), is_live=False, pv=self.latest.pv or [best]))
        now = {name: getattr(info, name) for name in ("nodes", "time_s", "hashfull", "workers")}
        others = [self._whole(replace(line, **now)) for line in lines[1:]]
        return Result(best, info, interrupted, [info, *others], list(notes))

    def _never_less(self, nodes: int) -> int:
        # a report has waited in the ring while live counts were shown: the nodes shown must not decrease
        self._most_nodes = max(self._most_nodes, nodes)
        return self._most_nodes

    def _with_line(self, info: Info, is_mate: bool) -> Info:
        """Return a report with a line: a move outside the window gets its last known line, or one from the table."""
        first = info.pv[0]
        if info.bound == "exact" and len(info.pv) == 1 and self.arena.header[0]["options"]["null_windows"]:
            info = replace(info, pv=self._whole_line(info, ()))  # null windows give moves but no lines
        if info.bound == "exact" or len(info.pv) > 1:
            self._known[first] = info.pv
            return info
        known = self._known.get(first, [])
        if len(known) < 2 or is_mate:  # the known line did not lead to this mate
            known = self._whole_line(info, ())
        return replace(info, pv=known)

    def _whole(self, info: Info) -> Info:
        """Return a report with its longest known line."""
        return replace(info, pv=self._whole_line(info, self._known.get(info.pv[0], ())))

    # -- numbers of the search: those of chess are converted, those of another game are passed on ----------------------

    def _score(self, value: int, bound: int = BOUND_EXACT) -> chess.engine.PovScore:
        if isinstance(self._board, chess.Board):
            return to_score(value, self._board.turn, bound)
        return chess.engine.PovScore(chess.engine.Cp(value), chess.WHITE)

    def _move(self, code: int) -> Any:
        return to_chess_move(code, self._board) if isinstance(self._board, chess.Board) else code

    def _whole_line(self, info: Info, known: Sequence[Any]) -> list[Any]:
        if isinstance(self._board, chess.Board):
            return whole_line(self.arena, self._board, info, known)
        return max([list(info.pv), list(known)], key=len)

    def _static_score(self) -> chess.engine.PovScore:
        if not isinstance(self._board, chess.Board):
            return self._score(self._board.static_score())
        scratch = np.zeros(1, evaluation_dtype)  # a late worker may still be using its own
        addresses = (array.ctypes.data for array in (self.arena.tables, scratch, self.arena.header["root"]))
        return self._score(int(evaluate_position(*addresses)))
