"""The other machines as seen from the one that is asked: who is there, what they are given, what they answer."""

from __future__ import annotations

import pickle
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

from psearch.arena.perturbation import history_seed
from psearch.arena.table_exchange import TableExchange
from psearch.core.chess.chess_entries import EXCHANGE
from psearch.defaults import MAX_THREADS
from psearch.processes.supervisor import Supervisor
from psearch.processes.tasks.task_messages import Answered, ProcessJoined, ProcessLost, Raised, Told, error_of
from psearch.remote.one_position.entry_sharing import Sharing
from psearch.remote.one_position.joint_messages import Finished, Forget, MachineSettings, News, Orders, Search
from psearch.remote.one_position.machine import Machine
from psearch.remote.one_position.machine_messages import Parcel
from psearch.remote.ray.link import Link
from psearch.remote.ray.standing import Standing
from psearch.results import PsearchError
from psearch.scheduler.scheduler_entries import load_kernels

_BESIDE_MB = 400
"""MiB that a machine's processes need beside the table"""
_FORGETTING = 0
"""The number of work that is no search; searches are counted from 1."""
LATE_S = 30.0
"""Machines are not waited for when nothing has changed for so long; they join when they are ready."""
_WAIT_S = 0.1


@dataclass
class Member:
    """One of the others."""

    number: int
    """as in reports; 0 is the machine that is asked"""
    hand: int
    """its process"""
    name: str
    threads: int
    search: int = 0
    """the number of the search that it is at, 0 none"""
    is_asked: bool = False
    """an order has not been answered yet"""
    heard_at: float = 0.0
    mail: deque[Parcel] = field(default_factory=deque)
    """what it has not been sent yet"""


@dataclass(frozen=True)
class MemberJoined:
    """A machine is ready."""

    member: Member


@dataclass(frozen=True)
class Heard:
    """News from a machine; finished: they are the last of that search."""

    member: Member
    news: News
    finished: Finished | None = None


Event = MemberJoined | Heard


class Team:
    """The machines of a Ray cluster but this one, each with one process that has all the cores which Ray may give away
    there; a context manager.

    address: see `psearch.remote.ray.address`; hash_mb: of each machine's table; most_threads: that a machine uses,
    None: all it has; on_note: called with a line for people when a machine comes to grief; is_stopped: whether to give
    up, asked while it connects. Raises PsearchError when the cluster cannot be had. For one thread at a time.
    """

    def __init__(
        self,
        address: str,
        hash_mb: int,
        most_threads: int | None = None,
        on_note: Callable[[str], None] = lambda note: None,
        is_stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        self._on_note = on_note
        self._most_threads = most_threads
        self._wake: Callable[[], None] | None = None
        load_kernels(EXCHANGE)  # for `sharing`: not in a search
        settings = MachineSettings(hash_mb, most_threads)
        memory = (hash_mb + _BESIDE_MB) * 2**20
        self._link: Link | None = Link(
            address, partial(_begin, settings), None, memory, on_message=self._has_news, is_stopped=is_stopped
        )
        self._standing = Standing(on_note, time.monotonic(), "other machine", "the search goes on without it")
        self._members: dict[int, Member] = {}
        """by hand"""
        self._searches = 0
        self._own: Sharing | None = None
        self._own_exchange: TableExchange | None = None

    def __enter__(self) -> Team:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """End the others' processes and leave the cluster. May be called twice."""
        link, self._link = self._link, None
        self._members.clear()
        if link is not None:
            link.close()

    @property
    def is_there(self) -> bool:
        """Whether the cluster has not been lost."""
        return self._link is not None

    @property
    def members(self) -> list[Member]:
        """Those that are ready."""
        return list(self._members.values())

    def wait(self, is_stopped: Callable[[], bool] = lambda: False, late_s: float = LATE_S) -> None:
        """Wait until all machines that there are now are ready, or nothing has changed for `late_s` seconds: who is
        not ready then is named, and joins later.

        Raises PsearchError when there is none that can work, or when the cluster is lost.
        """
        standing = self._standing
        while not is_stopped():
            for _ in self.events(_WAIT_S):
                continue
            if self._link is None:
                raise PsearchError("the cluster is lost")
            waiting = [node.name for node in standing.nodes.values() if not node.hands]
            if standing.are_nodes_known and not standing.nodes:
                raise standing.nobody()
            if standing.are_nodes_known and not waiting:
                return
            if time.monotonic() > standing.changed_at + late_s:
                who = ", ".join(waiting) or "the other machines"
                why = "other programs may have the cores, or kernels are compiled"
                self._on_note(f"not ready yet: {who} ({why}); whoever gets ready joins")
                return

    # -- a search ----------------------------------------------------------------------------------------------------

    def begin(self, wake: Callable[[], None]) -> int:
        """Begin a search; returns its number. wake: called by another thread whenever `events` may have some."""
        self._wake = wake
        self._searches += 1
        return self._searches

    def end(self) -> None:
        """End the search: what machines are still at is not waited for."""
        for member in self.members:
            if member.search:
                self.order(member, Orders(member.search, stop=True))
                member.search = 0
            member.mail.clear()
        self._wake = None

    def give(self, member: Member, search: Search) -> None:
        """Have a machine search, once it is done with what it was given before."""
        if self._link is not None:
            self._link.give(member.hand, search.number, search)
            member.search, member.is_asked, member.heard_at = search.number, False, time.monotonic()

    def order(self, member: Member, orders: Orders) -> None:
        """Tell a machine something beside its search; the answer is an event."""
        if self._link is not None:
            self._link.ask(member.hand, orders.search, orders)
            member.is_asked = True

    def forget(self) -> None:
        """Forget everything, as for another game."""
        if self._own is not None:
            self._own.forget()
        for member in self.members:
            self._make_forget(member)

    def sharing(self, supervisor: Supervisor) -> Sharing:
        """Return this machine's side of the exchange, from one search to the next, with its workers' table as it is
        now."""
        arena = supervisor.arena
        if self._own is None or self._own_exchange is None:
            self._own_exchange = TableExchange(arena)
            self._own = Sharing(0, 1, self._own_exchange)
        elif self._own_exchange.arena is not arena:
            self._own_exchange.follow(arena)
        return self._own

    def events(self, timeout_s: float = 0.0) -> Iterator[Event]:
        """Yield what has happened; waits for the first of it. When the cluster is gone, so are all machines."""
        link = self._link
        if link is None:
            return
        try:
            messages = link.messages(timeout_s)
        except PsearchError as error:
            self._on_note(f"{error}; this machine goes on alone")
            self.close()
            return
        for message in messages:
            self._standing.follow(message, time.monotonic())
            match message:
                case ProcessJoined(hand, node, name):
                    threads = min(self._standing.nodes[node].cores, self._most_threads or MAX_THREADS, MAX_THREADS)
                    member = self._members[hand] = Member(hand + 1, hand, name, threads)
                    self._make_forget(member)
                    yield MemberJoined(member)
                case ProcessLost(hand, _):
                    self._members.pop(hand, None)
                case Told(hand, _, answer) if hand in self._members:
                    member = self._members[hand]
                    member.is_asked, member.heard_at = False, time.monotonic()
                    yield Heard(member, pickle.loads(answer))
                case Answered(hand, number, answer) if hand in self._members and number != _FORGETTING:
                    member, finished = self._members[hand], pickle.loads(answer)
                    member.heard_at = time.monotonic()
                    if member.search == number:
                        member.search = 0
                    yield Heard(member, finished.news, finished)
                case Raised(hand, _, raised):
                    link.dismiss(hand, f"it raised {error_of(raised)!r}")

    def _make_forget(self, member: Member) -> None:
        if self._link is not None:
            self._link.give(member.hand, _FORGETTING, Forget(history_seed(1, member.number)))

    def _has_news(self) -> None:
        wake = self._wake
        if wake is not None:
            wake()


def _begin(settings: MachineSettings, cores: int) -> Machine:
    """In each machine's process."""
    return Machine(settings, cores)
