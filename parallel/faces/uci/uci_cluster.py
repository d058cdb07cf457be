"""The machines that the option `Cluster` names: they search as well, and the engine goes on without them when they are
gone."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from psearch.faces.uci.notices import Notices
from psearch.processes.request import SearchRequest
from psearch.processes.supervisor import Supervisor
from psearch.results import PsearchError, Result

if TYPE_CHECKING:
    from psearch.remote.one_position.team import Team

_NAME = "Cluster"
_WAIT_S = 5.0
"""`isready` waits so long for machines that have just been asked for, and those for others that may come."""
_LOOK_S = 0.05
_AGAIN_S, _MOST_AGAIN_S = 60.0, 3600.0
"""until a cluster that could not be had is tried again; each time twice as long, as it takes the cores meanwhile"""
_CLOSE_S = 8.0
"""A driver takes no longer to leave."""


class ClusterOption:
    """For one thread; `close` is for any."""

    def __init__(self, notices: Notices) -> None:
        self._notices = notices
        self._wanted = ("", 0)
        """address and MiB of each table; without an address there are no others"""
        self._membership: _Membership | None = None
        self._settled_at = 0.0

    def close(self) -> None:
        """End the others' processes."""
        membership = self._membership
        if membership is not None:
            membership.leave()
            membership.join(_CLOSE_S)

    def settle(self, address: str, hash_mb: int) -> None:
        """Have the machines of another cluster, or with tables of another size, when they are ready. What fails is told
        once."""
        if (address, hash_mb) == self._wanted:
            return
        self._wanted = address, hash_mb
        self._notices.works(_NAME)
        before, self._membership = self._membership, None
        if before is not None:
            before.leave()
        if address:
            self._membership = _Membership(address, hash_mb, self._notices, before)
            self._membership.start()
            self._settled_at = time.monotonic()

    def wait(self, is_wanted: Callable[[], bool]) -> None:
        """Wait for machines that have been asked for just now, some seconds, as long as `is_wanted`."""
        membership = self._membership
        if membership is not None:
            end = self._settled_at + _WAIT_S
            while time.monotonic() < end and is_wanted() and not membership.has_tried.wait(_LOOK_S):
                continue

    def forget(self) -> None:
        """As for another game."""
        if self._membership is not None and self._membership.team is not None:
            self._membership.team.forget()

    def search(self, supervisor: Supervisor, request: SearchRequest) -> Result:
        """With the machines that there are, or without any."""
        team = None if self._membership is None else self._membership.team
        if team is None:
            return supervisor.search(request)
        from psearch.remote.one_position.joint_search import search_together

        return search_together(supervisor, team, request)


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
        """The thread."""
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
                self._notices.fails(_NAME, f"{_NAME}: {error}; going on without")
            return None
        except Exception as error:  # the engine goes on whatever it is
            self._notices.internal_error(error)
            return None
        self._notices.works(_NAME)
        if team.members:
            names = ", ".join(f"{member.name} with {member.threads}" for member in team.members)
            self._notices.tell(f"{_NAME}: {len(team.members)} more, threads of each: {names}")
        return team
