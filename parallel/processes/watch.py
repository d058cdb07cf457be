"""Watches one search from the parent's side: passes on reports, keeps the limits, stops it, collects the workers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import chess
import chess.engine
import numpy as np

from psearch.arena.setup import SearchOptions, write_search
from psearch.core.board.bridge import to_chess_move
from psearch.core.constants import BOUND_EXACT, BOUND_LOWER, BOUND_UPPER, MATE, MATE_IN_MAX_PLY
from psearch.core.entries import evaluate_position
from psearch.core.records import INFO_RING, evaluation_dtype
from psearch.processes.control import SearchControl
from psearch.processes.time_manager import Budget, TimeManager
from psearch.processes.worker import DONE, GO
from psearch.results import Info, Limits, PsearchError, Result, WorkerStats
from psearch.scheduler.entries import request_stop

if TYPE_CHECKING:
    from psearch.processes.supervisor import Supervisor

OnInfo = Callable[[Info], None]

_POLL_S = 0.01
_EAGER_POLL_S = 0.001
"""While the first iteration is under way: it takes about that long."""
_LIVE_INTERVAL_S = 0.1
_STOP_TIMEOUT_S = 10.0
_PATIENCE_S = 0.004
"""How long workers may take to stop before the answer is given without them."""
_FIRST_ITERATION_S = 0.05
"""What a search that has to stop may take on top to finish its first iteration: an answer wants a score."""
_BOUND_NAMES = {BOUND_EXACT: "exact", BOUND_LOWER: "lower", BOUND_UPPER: "upper"}


def to_score(value: int, turn: chess.Color) -> chess.engine.PovScore:
    """Centipawns or mate distance, from the view of the side to move."""
    if abs(value) < MATE_IN_MAX_PLY:
        return chess.engine.PovScore(chess.engine.Cp(value), turn)
    moves = (MATE - abs(value) + 1) // 2
    return chess.engine.PovScore(chess.engine.Mate(moves if value > 0 else -moves), turn)


@dataclass(frozen=True)
class SearchRequest:
    """What to search and how."""

    board: chess.Board
    limits: Limits
    options: SearchOptions
    only: Sequence[chess.Move] | None = None
    """root moves to choose from; None: all"""
    multipv: int = 1
    on_info: OnInfo | None = None
    stop: threading.Event | None = None
    control: SearchControl = field(default_factory=SearchControl)
    on_answer: Callable[[Result], None] | None = None
    """called with the answer, once, if workers are slow to stop: they may be waiting for a core"""


class Watch:
    """One search: from the setup of the root until every worker has left it."""

    def __init__(self, supervisor: Supervisor, request: SearchRequest) -> None:
        self.supervisor = supervisor
        self.arena = supervisor.arena
        self.request = request
        self.board = request.board
        self.on_info = request.on_info
        self.working: set[int] = set()
        self.most_nodes = 0
        self.interrupted = False
        self.stopping = False
        self.stopped_at_s = 0.0
        self.has_answered = False
        self.mate_found = False
        self.reported = 0
        self.last_live_s = 0.0
        self.due_since_s: float | None = None
        self.latest = Info(0, 0, to_score(0, self.board.turn), "exact", 0, 0.0)
        self.lines: list[Info] = []
        self.new_lines: list[Info] = []
        clock = request.control.clock
        if clock is None:
            movetime = request.limits.movetime_ms
            clock = TimeManager(Budget() if movetime is None else Budget(hard_s=movetime / 1000))
        self.clock = clock

    def run(self) -> Result:
        request = self.request
        recorder = self.supervisor.recorder
        if recorder is not None:
            recorder.begin()
        # cleared before the search is set up: what is said from now on is heard
        self.supervisor.clear_wakes()
        request.control.attach(self.supervisor.wake)
        try:
            write_search(self.arena, self.board, request.limits, request.options, request.only, request.multipv)
            self.wanted_lines = int(self.arena.header[0]["multipv"])
            self.start = request.control.asked_at or time.perf_counter()
            try:
                for index in range(self.arena.workers):
                    self.working.add(index)
                    self.supervisor.send(index, GO)
                self._watch()
            except BaseException:
                # an exception in the caller's callback, or Ctrl-C: leave no worker running and no answer unread
                self.supervisor.is_broken = True  # unless all of them are through
                request_stop(self.arena.context)
                self._collect()
                raise
            self._drain_infos()
        finally:
            request.control.attach(None)
            if recorder is not None:
                recorder.end()
        return self._result()

    def _result(self) -> Result:
        best = to_chess_move(int(self.arena.header[0]["best_move"]), self.board)
        lines = self.lines or sorted_lines(self.new_lines)  # stopped before all lines had their first depth
        if self.wanted_lines > 1 and lines:
            self.latest = lines[0]
        if self.latest.pv:
            # the last report's own move: an early answer is put together while workers go on
            best = self.latest.pv[0]
        elif self.latest.depth == 0:  # ended by its node limit before it had anything to report
            scratch = np.zeros(1, evaluation_dtype)  # a late worker may still be using its own
            addresses = (array.ctypes.data for array in (self.arena.tables, scratch, self.arena.header["root"]))
            static = evaluate_position(*addresses)
            self.latest = replace(self.latest, score=to_score(int(static), self.board.turn))
        info = replace(self._now(), is_live=False)
        if not info.pv:
            info = replace(info, pv=[best])
        others = [
            replace(line, nodes=info.nodes, time_s=info.time_s, hashfull=info.hashfull, workers=info.workers)
            for line in lines[1:]
        ]
        return Result(best, info, self.interrupted, [info, *others])

    # -- the loop ----------------------------------------------------------------------------------------------------

    def _elapsed(self) -> float:
        return time.perf_counter() - self.start

    def _watch(self) -> None:
        """Until all workers are through: pass on reports, keep the limits, notice deaths."""
        done_at: float | None = None
        while self.working:
            self._drain_infos()
            now = self._elapsed()
            if not self.stopping and self._must_stop(now):
                request_stop(self.arena.context)
                self.stopping = True
                self.stopped_at_s = now
            self._answer_early(now)
            if self.on_info and self.latest.depth and now - self.last_live_s >= _LIVE_INTERVAL_S:
                self.last_live_s = now
                self.on_info(self._now())
            for index in self.supervisor.wait_for_workers(self._pause(now)):
                self.supervisor.receive(index, DONE)
                self.working.discard(index)
            if self.arena.header["done"][0]:
                done_at = done_at or time.monotonic()
                if time.monotonic() > done_at + _STOP_TIMEOUT_S:
                    raise self.supervisor.silent(min(self.working))

    def _pause(self, now: float) -> float:
        """Seconds until there may be something to do that nobody calls for."""
        if self.stopping:
            patience = self.stopped_at_s + _PATIENCE_S - now
            return _POLL_S if self.has_answered or patience <= 0 else patience
        pause = _POLL_S if self._has_answer() else _EAGER_POLL_S
        deadline = self.clock.deadline_s()
        return min(pause, max(deadline - now, _EAGER_POLL_S / 4))

    def _answer_early(self, now: float) -> None:
        """Give the answer as it stands when the workers take their time: somebody's clock is running."""
        if self.request.on_answer is None or self.has_answered or not self.stopping:
            return
        if now - self.stopped_at_s >= _PATIENCE_S:
            self.has_answered = True
            self.on_info = None  # what is reported from now on comes too late: the next search may be under way
            self.request.on_answer(self._result())

    def _must_stop(self, now: float) -> bool:
        """Whether the caller or a limit ends the search now."""
        request = self.request
        if request.control.take_ponderhit():
            self.clock.ponderhit(now)
        if request.control.is_stopped or (request.stop is not None and request.stop.is_set()):
            self.interrupted = True
        if not (self.interrupted or self.mate_found or self.clock.is_due(now)):
            return False
        if self.due_since_s is None:
            self.due_since_s = now
        return self._has_answer() or now >= self.due_since_s + _FIRST_ITERATION_S

    def _has_answer(self) -> bool:
        """Whether the first iteration has ended."""
        return self.latest.depth > 0 and (self.wanted_lines == 1 or bool(self.lines))

    def _collect(self) -> None:
        """Wait until every worker has left the search, whatever happened to it."""
        deadline = time.monotonic() + _STOP_TIMEOUT_S
        while self.working and time.monotonic() < deadline:
            try:
                for index in self.supervisor.wait_for_workers(_POLL_S):
                    self.supervisor.receive(index, DONE)
                    self.working.discard(index)
            except PsearchError:
                return  # all workers have been killed
        self.supervisor.is_broken = bool(self.working)

    # -- reports -----------------------------------------------------------------------------------------------------

    def _drain_infos(self) -> None:
        """Turn new reports in the ring into `Info`s."""
        header = self.arena.header[0]
        count = int(header["info_count"])
        self.reported = max(self.reported, count - INFO_RING + 8)
        while self.reported < count:
            record = header["infos"][self.reported % INFO_RING]
            self.reported += 1
            info = Info(
                depth=int(record["depth"]),
                seldepth=int(record["seldepth"]),
                score=to_score(int(record["score"]), self.board.turn),
                bound=_BOUND_NAMES[int(record["bound"])],
                nodes=self._never_less(int(record["nodes"])),
                time_s=self._elapsed(),
                pv=self._line(record),
                workers=self._worker_stats(),
                multipv=int(record["line"]) + 1,
                hashfull=self.arena.fill_permille(),
            )
            self._take_report(info, int(record["score"]))

    def _take_report(self, info: Info, value: int) -> None:
        """Show the report: at once if one line is wanted, else when all lines of a depth are there."""
        if self.wanted_lines > 1:
            if info.bound != "exact":
                self.clock.trouble()
                return
            if info.multipv == 1:
                self.new_lines = []
            self.new_lines.append(info)
            if len(self.new_lines) < self.wanted_lines:
                return
            self.lines = sorted_lines(self.new_lines)
            self.new_lines = []
        else:
            self.lines = [info]
        self.latest = self.lines[0]
        best = self.latest.score.relative
        if info.bound != "exact":
            self.clock.trouble()
        else:
            self.clock.iteration(self.latest.pv[0], best.score(mate_score=MATE) or 0)
        self._look_for_mate(info.bound)
        if self.on_info:
            for line in self.lines:
                self.on_info(line)

    def _look_for_mate(self, bound: str) -> None:
        wanted, found = self.request.limits.mate, self.latest.score.relative.mate()
        if wanted is not None and found is not None and abs(found) <= wanted and bound == "exact":
            self.mate_found = True

    def _never_less(self, nodes: int) -> int:
        """A report waits in the ring while the live count goes on: what is shown does not go back."""
        self.most_nodes = max(self.most_nodes, nodes)
        return self.most_nodes

    def _line(self, record: Any) -> list[chess.Move]:
        board = self.board.copy(stack=False)
        line = []
        for code in record["pv"][: int(record["pv_length"])]:
            move = to_chess_move(int(code), board)
            line.append(move)
            board.push(move)
        return line

    def _worker_stats(self) -> list[WorkerStats]:
        return [
            WorkerStats(
                nodes=int(worker["nodes"]),
                splits=int(worker["counters"]["splits"]),
                joins=int(worker["counters"]["joins"]),
                aborted_nodes=int(worker["counters"]["aborted_nodes"]),
                idle_share=int(worker["counters"]["idle_cycles"]) / max(int(worker["counters"]["search_cycles"]), 1),
            )
            for worker in self.arena.worker
        ]

    def _now(self) -> Info:
        """The latest report with present counters."""
        currmove, number = self._current_move()
        return replace(
            self.latest,
            seldepth=max(self.latest.seldepth, int(self.arena.worker["counters"]["seldepth"].max())),
            nodes=self._never_less(int(self.arena.worker["nodes"].sum())),
            time_s=self._elapsed(),
            workers=self._worker_stats(),
            hashfull=self.arena.fill_permille(),
            is_live=True,
            currmove=currmove,
            currmovenumber=number,
        )

    def _current_move(self) -> tuple[chess.Move | None, int]:
        """What the worker at the main root is searching. Read while it writes, so it may be just over."""
        visit = self.arena.frames[0]["visit"]
        move = to_chess_move(int(visit["move"]), self.board)
        if move not in self.board.legal_moves:
            return None, 0
        return move, int(visit["index"]) + int(self.arena.stack[0]["root_line"]) + 1


def sorted_lines(lines: Sequence[Info]) -> list[Info]:
    """The lines of one depth, numbered from the best."""
    ranked = sorted(lines, key=lambda line: line.score.relative, reverse=True)
    return [replace(line, multipv=number) for number, line in enumerate(ranked, start=1)]
