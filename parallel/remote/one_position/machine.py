"""One of the other machines: workers on all of its cores, in an actor's process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from psearch.arena.perturbation import perturb_history
from psearch.arena.table_exchange import TableExchange
from psearch.core.chess.chess_entries import EXCHANGE
from psearch.defaults import MAX_THREADS
from psearch.processes.control import SearchControl
from psearch.processes.request import SearchRequest
from psearch.processes.supervisor import Supervisor
from psearch.remote.one_position.entry_sharing import Sharing
from psearch.remote.one_position.joint_messages import Finished, Forget, MachineSettings, News, Orders, Search
from psearch.remote.one_position.machine_messages import MachineReport, Parcel
from psearch.remote.one_position.machine_reports import report_of
from psearch.results import Info
from psearch.scheduler.scheduler_entries import load_kernels

_COUNT_S = 0.05
"""between two looks at how many nodes it has searched"""


class Machine:
    """Called with work, by one thread; asked beside it, by another. cores: that it may use.

    Raises PsearchError when kernels, memory or processes are not to be had.
    """

    def __init__(self, settings: MachineSettings, cores: int) -> None:
        load_kernels(EXCHANGE)
        threads = min(cores, settings.most_threads or cores, MAX_THREADS)
        self._supervisor = Supervisor(threads, settings.hash_mb)
        self._exchange = TableExchange(self._supervisor.arena)
        self._sharing = Sharing(0, 1, self._exchange)
        self._is_searching = False
        self._lock = threading.Lock()
        """for the fields below"""
        self._search = -1
        """the present one, or the last"""
        self._stopped = -1
        """the last search that was stopped, be it that it has not begun"""
        self._control = SearchControl()
        self._nodes = 0
        self._reports: list[MachineReport] = []

    def close(self) -> None:
        """End the workers, give the memory back."""
        self._supervisor.close()

    # -- work --------------------------------------------------------------------------------------------------------

    def __call__(self, work: Search | Forget) -> Finished | None:
        """Do it. Raises WorkerDied, PsearchError."""
        if isinstance(work, Search):
            return self._answer(work)
        self._supervisor.forget()
        with self._table():
            self._sharing.forget()
            perturb_history(self._exchange.arena, work.seed)
        return None

    def _answer(self, search: Search) -> Finished:
        control = SearchControl()
        with self._lock:
            self._search, self._control, self._nodes, self._reports = search.number, control, 0, []
            if self._stopped >= search.number:
                return Finished(News(search.number), is_complete=False)

        def take(info: Info) -> None:
            with self._lock:
                self._nodes = info.nodes
                if not info.is_live:
                    self._reports.append(report_of(info, search.machine))

        with self._table():
            self._sharing.machine = search.machine
            self._sharing.begin()
            self._is_searching = True
        try:
            request = SearchRequest(
                search.board,
                search.limits,
                search.options,
                search.only,
                search.multipv,
                on_info=take,
                control=control,
                live_interval_s=_COUNT_S,
            )
            result = self._supervisor.search(request)
        finally:
            with self._table():
                self._is_searching = False
                self._sharing.end()
        share = search.limits.nodes
        is_complete = not result.interrupted and (share is None or result.info.nodes < share)
        with self._lock:
            self._nodes = result.info.nodes
        return Finished(self._news(), is_complete)

    # -- beside it ---------------------------------------------------------------------------------------------------

    def beside(self, orders: Orders) -> News:
        """Take what the others have found, tell what is new here. Of another search than the present one nothing."""
        if orders.stop:
            self._stop(orders.search)
        with self._lock:
            if orders.search != self._search:
                return News(orders.search)
        parcel = None
        with self._table():
            if self._is_searching and not orders.stop:
                for one in orders.parcels:
                    self._sharing.take(one)
                self._sharing.room = orders.room
                parcel = self._sharing.pack()
        return self._news(parcel)

    def _stop(self, search: int) -> None:
        with self._lock:
            self._stopped = max(self._stopped, search)
            if search == self._search:
                self._control.stop()

    def _news(self, parcel: Parcel | None = None) -> News:
        with self._lock:
            reports, self._reports = tuple(self._reports), []
            return News(self._search, self._nodes, reports, parcel)

    @contextmanager
    def _table(self) -> Iterator[None]:
        """Inside, the table is there, and of one thread alone: workers are replaced at any time."""
        with self._supervisor.workers.steady() as arena:
            if arena is not self._exchange.arena:
                self._exchange.follow(arena)
            yield
