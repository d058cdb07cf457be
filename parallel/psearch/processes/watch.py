"""The program's side of one search: set it up, keep its limits, stop it, and continue after losses of workers."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace

from psearch.arena.setup import Progress, write_search
from psearch.defaults import MAX_DEPTH
from psearch.processes.patience import INTERRUPTED_S, REPAIR_S, SHORT_LIFE_S, SHORT_LIVES
from psearch.processes.pool import WorkerPool
from psearch.processes.request import SearchRequest
from psearch.processes.search_reports import Reports
from psearch.results import Limits, PsearchError, Result, WorkerDied, WorkerStats
from psearch.scheduler.scheduler_entries import is_done, request_stop, set_deadline
from psearch_core.constants import MATE
from psearch_core.toolchain.kernel_sets import STANDARD

_LATEST_NS = 2.0**63
"""Deadline, in nanoseconds, that workers have no number for."""


class Watch:
    """One search, from the setup of the root until every worker has left it, or the answer cannot wait for them.

    The workers must be complete and idle, and the board must have a legal move. since: moment of the request, on
    `time.perf_counter`; notes: those made before the start; earlier: counters of workers that searched for it before.
    """

    def __init__(
        self,
        pool: WorkerPool,
        request: SearchRequest,
        since: float,
        notes: Sequence[str] = (),
        earlier: Sequence[WorkerStats] = (),
    ) -> None:
        self.pool = pool
        self.request = request
        self.since = since
        self.notes = list(notes)
        self._earlier = list(earlier)
        self.clock = request.clock()
        self.reports: Reports
        """Reports of the workers; set when the search has been set up."""
        self.interrupted = False
        self.mate_found = False
        self.due_since_s: float | None = None
        """Seconds from the request until a limit was reached."""
        self.stopped_at_s: float | None = None
        """Seconds from the request until the workers were stopped."""
        self.is_over = False
        self.begun_s = 0.0
        """Seconds from the request until the present workers began."""
        self.depth_at_begin = 0
        self.short_lives = 0
        self.repair_s = REPAIR_S
        self.next_live_s = max(request.live_from_s, request.live_interval_s) if request.on_info else math.inf

    def run(self) -> None:
        """Run the search. Raises WorkerDied when nothing was found and no process can continue, PsearchError when the
        pool is closed meanwhile, and what the caller's callbacks raise, after all workers are idle or killed."""
        # cleared before the search is set up: from now on calls of the control wake the loop
        self.pool.wake.clear()
        control = self.request.control
        control.attach(self.pool.wake.set)
        try:
            self._set_up(self.request.limits, None)
            self.reports = Reports(self.pool.arena, self.request.board, self.since)
            self.reports.continue_in(self.pool.arena, self._earlier)
            self._search()
        except WorkerDied:
            raise
        except BaseException:
            # an exception in the caller's callback, or Ctrl-C: leave no worker running and no message unread
            self.pool.stop()
            self.pool.settle(INTERRUPTED_S)
            raise
        finally:
            control.attach(None)

    @property
    def knows_nothing(self) -> bool:
        """Whether time ran out before the first move was found."""
        return self.reports.latest.depth == 0 and self.stopped_at_s is not None

    def result(self) -> Result:
        """Return the result as it stands now."""
        return self.reports.result(self.interrupted, self.notes)

    def note(self, text: str) -> None:
        """Report a note to the caller, now and in the result."""
        self.notes.append(text)
        if self.request.on_note is not None:
            self.request.on_note(text)

    def _set_up(self, limits: Limits, progress: Progress | None) -> None:
        request, arena = self.request, self.pool.arena
        is_substitute = not self.pool.are_processes and arena.kernels == STANDARD
        options = request.options.standard() if is_substitute else request.options
        if arena.workers == 1 or is_substitute:
            options = options.alone()
        write_search(arena, request.board, limits, options, request.only, request.multipv, progress)

    def _set_up_again(self) -> None:
        """Set the search up for other workers, after the last finished iteration, with the rest of the limits."""
        limits = self.request.limits
        if limits.nodes is not None:
            limits = replace(limits, nodes=max(1, limits.nodes - self.reports.now().nodes))
        self._set_up(limits, self.reports.progress())

    def _search(self) -> None:
        """Pass on reports, keep the limits, and handle deaths and stalls, until the end of the search."""
        is_begun = False
        while not self.is_over:
            try:
                if not is_begun:
                    self._begin()
                    is_begun = True
                self._look()
                if not self.is_over and self._take_more_workers():
                    is_begun = False
            except WorkerDied as error:
                self._continue_after(error)
                is_begun = False
        self.clock.is_due(self.reports.elapsed_s)  # workers may have kept the deadline before this process noticed it
        self._take_reports()

    def _begin(self) -> None:
        self.begun_s = self.reports.elapsed_s
        self.depth_at_begin = self.reports.latest.depth
        self._tell_deadline()
        self.pool.begin()

    def _tell_deadline(self) -> None:
        """Tell the workers when the search must stop: this process may have to wait for a core that they use."""
        deadline_ns = 1e9 * (self.since + self.clock.deadline_s())
        set_deadline(self.pool.arena.context, round(deadline_ns) if deadline_ns < _LATEST_NS else 0)

    def _look(self) -> None:
        """Wait for the next event. The search is over when all workers have left it, or when late ones have had their
        time; without a result they get none, because a search in this process is faster."""
        self._take_reports()
        now = self.reports.elapsed_s
        if self.stopped_at_s is None and self._must_stop(now):
            request_stop(self.pool.arena.context)
            self.stopped_at_s = now
        if self.request.on_info is not None and now >= self.next_live_s:
            self.next_live_s = now + self.request.live_interval_s
            if self.reports.latest.depth:
                self.request.on_info(self.reports.now())
        patience_s = self.request.patience_s if self.reports.has_answer else 0.0
        if self.stopped_at_s is not None:
            pause_s = self.stopped_at_s + patience_s - self.reports.elapsed_s
        else:
            until_s = min(self.clock.due_s(), self.next_live_s)
            if self.due_since_s is not None:
                until_s = self.due_since_s + self.clock.budget.first_s
            pause_s = min(until_s - self.reports.elapsed_s, self.pool.look_pause_s())
        self.pool.collect(max(0.0, pause_s))
        if not self.pool.busy:
            self.is_over = True
        elif self.stopped_at_s is not None:
            self.is_over = self.reports.elapsed_s - self.stopped_at_s >= patience_s
        else:
            self.pool.look(self.pool.busy)

    @property
    def _has_ended(self) -> bool:
        """Whether the search has ended by itself, at its last depth or its node limit."""
        arena, finished = self.pool.arena, self.reports.finished
        is_deepest = bool(finished) and finished[0].depth >= (self.request.limits.depth or MAX_DEPTH)
        return is_deepest or bool(is_done(arena.context)) or bool(arena.header[0]["stop"])

    def _continue_after(self, error: WorkerDied) -> None:
        """Replace the workers and continue after the last finished iteration, unless the search is at its end."""
        self._take_reports()
        now = self.reports.elapsed_s
        if self.stopped_at_s is None and (self._must_stop(now) or now + self.repair_s > self.clock.deadline_s()):
            self.stopped_at_s = now
        if self.stopped_at_s is not None or self._has_ended:
            self.is_over = True
            self.note(f"{error.args[0]}; the search was over")  # without the exit code, which takes time to get
            return
        lived_long = now - self.begun_s >= SHORT_LIFE_S or self.reports.latest.depth > self.depth_at_begin
        self.short_lives = 0 if lived_long else self.short_lives + 1
        if self.short_lives >= SHORT_LIVES:
            if not self.reports.has_answer:
                raise WorkerDied(f"{error}, as those before it; the search was stopped") from error
            self.is_over = True
            self.note(f"{error}, as those before it; the search was stopped")
            return
        self.note(f"{error}; {self._replace_workers(error)}")
        if not self.is_over:
            self._set_up_again()

    def _replace_workers(self, error: WorkerDied) -> str:
        """Replace the workers, if the system allows that; return what was done, for a note."""
        totals = self.reports.worker_stats()
        before = self.pool.arena
        began = time.monotonic()
        try:
            problem = self.pool.restore(lambda: not self._must_stop(self.reports.elapsed_s))
            if problem is not None and not self.pool.have_substitute:
                raise PsearchError(problem)
        except PsearchError as trouble:
            if not self.reports.has_answer:
                raise WorkerDied(f"{error}, and no others can be started: {trouble}") from error
            self.is_over = True
            return f"the search was stopped, because no others can be started: {trouble}"
        finally:
            self.repair_s = max(self.repair_s, time.monotonic() - began)
            if self.pool.arena is not before:
                self.reports.continue_in(self.pool.arena, totals)
        return "new workers continue" if problem is None else f"this process continues alone: {problem}"

    def _take_more_workers(self) -> bool:
        """Replace the workers by more of them if the caller has allowed that; return whether they were. They continue
        after the last finished iteration, with the same table. Near the end it is not worth the time."""
        threads = self.request.control.take_threads()
        if threads is None or threads <= self.pool.threads:
            return False
        now = self.reports.elapsed_s
        if self.stopped_at_s is not None or self._must_stop(now) or self._has_ended:
            return False
        if now + self.repair_s > self.clock.deadline_s():
            return False
        totals = self.reports.worker_stats()
        try:
            problem = self.pool.increase(threads)
        finally:
            self.reports.continue_in(self.pool.arena, totals)
        if problem is not None:
            self.note(f"no more workers: {problem}")
        self._set_up_again()
        return True

    def _must_stop(self, now: float) -> bool:
        """Tell whether the caller or a limit ends the search now."""
        control = self.request.control
        if (hit_at := control.take_ponderhit()) is not None:
            self.clock.ponderhit(hit_at - self.since)
            self._tell_deadline()
        if control.is_stopped:
            self.interrupted = True
        if not (self.interrupted or self.mate_found or self.clock.is_due(now)):
            return False
        if self.due_since_s is None:
            self.due_since_s = now
        return self.reports.has_answer or now >= self.due_since_s + self.clock.budget.first_s

    def _take_reports(self) -> None:
        """Pass new reports to the clock and to the caller; several lines only when all of one depth are there."""
        for info in self.reports.read():
            if info.bound != "exact":
                self.clock.trouble()
            shown = self.reports.complete(info)
            if shown and info.bound == "exact":
                score = shown[0].score.relative
                self.clock.iteration(shown[0].pv[0], score.score(mate_score=MATE) or 0, self.reports.share)
                wanted, found = self.request.limits.mate, score.mate()
                if wanted is not None and found is not None and abs(found) <= wanted:
                    self.mate_found = True
            if self.request.on_info:
                for line in shown:
                    self.request.on_info(line)
