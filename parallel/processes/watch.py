"""Watches one search from the program's side: sets it up, keeps the limits, stops it, collects the workers."""

from __future__ import annotations

import time

from psearch.arena.setup import write_search
from psearch.core.constants import MATE
from psearch.processes.pool import WorkerPool
from psearch.processes.reports import Reports
from psearch.processes.request import SearchRequest
from psearch.processes.time_manager import Budget, TimeManager
from psearch.processes.worker import DONE, GO
from psearch.results import Info, PsearchError, Result
from psearch.scheduler.entries import request_stop

_POLL_S = 0.01
_EAGER_POLL_S = 0.001
"""While the first iteration is under way: it takes about that long."""
_LIVE_INTERVAL_S = 0.1
_STOP_TIMEOUT_S = 10.0
_PATIENCE_S = 0.004
"""How long workers may take to stop before the answer is given without them."""
_FIRST_ITERATION_S = 0.05
"""What a search that has to stop may take on top to finish its first iteration: an answer wants a score."""


class Watch:
    """One search: from the setup of the root until every worker has left it.

    The pool's workers must be idle, and the board must have a legal move.
    """

    def __init__(self, pool: WorkerPool, request: SearchRequest) -> None:
        self.pool = pool
        self.arena = pool.arena
        self.request = request
        self.clock = request.control.clock or _fixed_clock(request.limits.movetime_ms)
        self.on_info = request.on_info
        """None from an early answer on"""
        self.reports: Reports
        """once the search has been set up"""
        self.working: set[int] = set()
        self.interrupted = False
        self.mate_found = False
        self.due_since_s: float | None = None
        """when a limit was reached; times are seconds since the search began"""
        self.stopped_at_s: float | None = None
        """when the workers were stopped"""
        self.has_answered = False
        self.last_live_s = 0.0

    def run(self) -> None:
        """Search. Raises WorkerDied, and what the caller's callbacks raise, then with all workers idle again."""
        # cleared before the search is set up: calls of control from now on wake the loop
        self.pool.clear_wakes()
        control = self.request.control
        control.attach(self.pool.wake)
        try:
            self._set_up()
            try:
                for index in range(self.arena.workers):
                    self.working.add(index)
                    self.pool.send(index, GO)
                self._loop()
            except BaseException:
                # an exception in the caller's callback, or Ctrl-C: leave no worker running and no answer unread
                self.pool.is_broken = True  # unless all of them come back
                request_stop(self.arena.context)
                self._collect()
                raise
            self._take_reports()
        finally:
            control.attach(None)

    def result(self) -> Result:
        """The answer."""
        return self.reports.result(self.interrupted)

    def _set_up(self) -> None:
        request = self.request
        write_search(self.arena, request.board, request.limits, request.options, request.only, request.multipv)
        self.reports = Reports(self.arena, request.board, request.control.asked_at or time.perf_counter())

    def _loop(self) -> None:
        """Until all workers have left the search: pass on reports, keep the limits, notice deaths."""
        done_at: float | None = None
        while self.working:
            self._take_reports()
            now = self.reports.elapsed_s
            if self.stopped_at_s is None and self._must_stop(now):
                request_stop(self.arena.context)
                self.stopped_at_s = now
            self._answer_early(now)
            self._show_live(now)
            self._receive_answers(self._pause(now))
            if self.working and self.arena.header["done"][0]:
                done_at = done_at or time.monotonic()
                if time.monotonic() > done_at + _STOP_TIMEOUT_S:
                    raise self.pool.give_up_silent(min(self.working))

    def _receive_answers(self, timeout_s: float) -> None:
        for index in self.pool.wait(timeout_s):
            self.pool.receive(index, DONE)
            self.working.discard(index)

    def _collect(self) -> None:
        """Wait until every worker has left the search, whatever happened to it."""
        deadline = time.monotonic() + _STOP_TIMEOUT_S
        while self.working and time.monotonic() < deadline:
            try:
                self._receive_answers(_POLL_S)
            except PsearchError:
                return  # all workers have been killed
        self.pool.is_broken = bool(self.working)

    # -- limits ------------------------------------------------------------------------------------------------------

    def _must_stop(self, now: float) -> bool:
        """Whether the caller or a limit ends the search now."""
        control = self.request.control
        if control.take_ponderhit():
            self.clock.ponderhit(now)
        if control.is_stopped:
            self.interrupted = True
        if not (self.interrupted or self.mate_found or self.clock.is_due(now)):
            return False
        if self.due_since_s is None:
            self.due_since_s = now
        return self.reports.has_answer or now >= self.due_since_s + _FIRST_ITERATION_S

    def _pause(self, now: float) -> float:
        """Seconds until there may be something to do for which no event comes."""
        if self.stopped_at_s is not None:
            patience = self.stopped_at_s + _PATIENCE_S - now
            return _POLL_S if self.has_answered or patience <= 0 else patience
        pause = _POLL_S if self.reports.has_answer else _EAGER_POLL_S
        return min(pause, max(self.clock.deadline_s() - now, _EAGER_POLL_S / 4))

    # -- what the caller gets ----------------------------------------------------------------------------------------

    def _take_reports(self) -> None:
        """Feed new reports to the clock, and show them: one line at once, several when all of a depth are there."""
        for info in self.reports.read():
            if info.bound != "exact":
                self.clock.trouble()
            shown = self.reports.complete(info)
            if shown and info.bound == "exact":
                self._take_iteration(shown[0])
            if self.on_info:
                for line in shown:
                    self.on_info(line)

    def _take_iteration(self, best: Info) -> None:
        score = best.score.relative
        self.clock.iteration(best.pv[0], score.score(mate_score=MATE) or 0)
        wanted, found = self.request.limits.mate, score.mate()
        if wanted is not None and found is not None and abs(found) <= wanted:
            self.mate_found = True

    def _show_live(self, now: float) -> None:
        if self.on_info and self.reports.latest.depth and now - self.last_live_s >= _LIVE_INTERVAL_S:
            self.last_live_s = now
            self.on_info(self.reports.now())

    def _answer_early(self, now: float) -> None:
        """Give the answer as it stands when the workers take their time: a game clock may be running."""
        if self.request.on_answer is None or self.has_answered or self.stopped_at_s is None:
            return
        if now - self.stopped_at_s >= _PATIENCE_S:
            self.has_answered = True
            self.on_info = None  # what is reported from now on comes too late: the next search may be under way
            self.request.on_answer(self.result())


def _fixed_clock(movetime_ms: int | None) -> TimeManager:
    return TimeManager(Budget() if movetime_ms is None else Budget(hard_s=movetime_ms / 1000))
