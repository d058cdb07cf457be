"""The other machines that search as well: joined at once, or in the background by an engine that goes on without."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from psearch.results import PsearchError
from psearch.searcher.notices import Notices

if TYPE_CHECKING:
    from psearch.remote.one_position.team import Team

_SUBJECT = "Cluster"
_WAIT_S = 5.0
"""`await_ready` waits so long for machines that have just been asked for, and those for others that may come."""
_LOOK_S = 0.05
_AGAIN_S, _MOST_AGAIN_S = 60.0, 3600.0
"""until a cluster that could not be had is tried again; each time twice as long, as it takes the cores meanwhile"""
_CLOSE_S = 8.0
"""A driver takes no longer to leave."""


class Machines:
    """The machines of a cluster, if there are to be some. For one thread; `close` is for any."""

    def __init__(self, notices: Notices) -> None:
        self._notices = notices
        self._joined: Team | None = None
        self._wanted = ("", 0)
        """address and MiB of each table, in the background; without an address there are no others"""
        self._membership: _Membership | None = None
        self._settled_at = 0.0

    @property
    def team(self) -> Team | None:
        """The machines, where there are any now."""
        return self._joined if self._membership is None else self._membership.team

    def close(self) -> None:
        """End the others' processes."""
        team, self._joined = self._joined, None
        if team is not None:
            team.close()
        membership = self._membership
        if membership is not None:
            membership.leave()
            membership.join(_CLOSE_S)

    def join(self, address: str, hash_mb: int, most_threads: int | None = None) -> None:
        """Have the machines of a cluster now, with tables of this size; those before are left. most_threads: that each
        uses, None: all it has. Raises PsearchError when there is none that can work."""
        from psearch.remote.one_position.team import Team

        self.close()
        team = Team(address, hash_mb, most_threads, on_note=self._notices.tell)
        try:
            team.wait()
        except BaseException:
            team.close()
            raise
        self._joined = team

    def settle(self, address: str, hash_mb: int) -> None:
        """Have the machines of a cluster, with tables of this size, when they are ready. What fails is told once."""
        if (address, hash_mb) == self._wanted:
            return
        self._wanted = address, hash_mb
        self._notices.works(_SUBJECT)
        before, self._membership = self._membership, None
        if before is not None:
            before.leave()
        if address:
            self._membership = _Membership(address, hash_mb, self._notices, before)
            self._membership.start()
            self._settled_at = time.monotonic()

    def await_ready(self, is_wanted: Callable[[], bool]) -> None:
        """Wait for machines that have been asked for just now, some seconds, as long as `is_wanted`."""
        membership = self._membership
        if membership is not None:
            end = self._settled_at + _WAIT_S
            while time.monotonic() < end and is_wanted() and not membership.has_tried.wait(_LOOK_S):
                continue


class _Membership(threading.Thread):
    """What connects to a cluster, which may take long, and again when that failed or the cluster was lost.

    before: one that ends first, with its processes. `team` is for whoever started it.
    """

    def __init__(self, address: str, hash_mb: int, notices: Notices, before: _Membership | None) -> None:
        super().__init__(name="psearch-cluster", daemon=True)
        self._address = address
        self._hash_mb = hash_mb
        self._notices = notices
        self._before = before
        self._is_left = threading.Event()
        self.team: Team | None = None
        """set when the machines are ready, or need not be waited for"""
        self.has_tried = threading.Event()
        """to connect, once"""

    def leave(self) -> None:
        """Have it end, and the others' processes with it."""
        self._is_left.set()

    def run(self) -> None:
        """Connect, and again, until it is left; the thread."""
        if self._before is not None:
            self._before.join()
            self._before = None
        pause_s = 0.0
        while not self._is_left.wait(pause_s):
            if self.team is None or not self.team.is_there:
                self.team = self._connect()
                self.has_tried.set()
                pause_s = _AGAIN_S if self.team else min(max(2 * pause_s, _AGAIN_S), _MOST_AGAIN_S)
        if self.team is not None:
            self.team.close()

    def _connect(self) -> Team | None:
        from psearch.remote.one_position.team import Team

        team = None
        try:
            team = Team(self._address, self._hash_mb, on_note=self._notices.tell, is_stopped=self._is_left.is_set)
            team.wait(self._is_left.is_set, _WAIT_S)
        except PsearchError as error:
            if team is not None:
                team.close()
            if not self._is_left.is_set():
                self._notices.fails(_SUBJECT, f"{_SUBJECT}: {error}; going on without")
            return None
        except Exception as error:  # the engine goes on whatever it is
            self._notices.internal_error(error)
            return None
        self._notices.works(_SUBJECT)
        if team.members:
            names = ", ".join(f"{member.name} with {member.threads}" for member in team.members)
            self._notices.tell(f"{_SUBJECT}: {len(team.members)} more, threads of each: {names}")
        return team
