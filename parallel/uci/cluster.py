"""The machines that the option `Cluster` names: they search as well, and the engine goes on without them when they are
gone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from psearch.processes.request import SearchRequest
from psearch.processes.supervisor import Supervisor
from psearch.results import PsearchError, Result
from psearch.uci.notices import Notices

if TYPE_CHECKING:
    from psearch.joint.team import Team

_NAME = "Cluster"


class Cluster:
    """For one thread; `close` is for any."""

    def __init__(self, notices: Notices) -> None:
        self._notices = notices
        self._wanted = ("", 0)
        """address and MiB of each table; without an address there are no others"""
        self._team: Team | None = None
        self._is_closed = False

    def close(self) -> None:
        """End the others' processes."""
        self._is_closed = True
        self._leave()

    def settle(self, address: str, hash_mb: int) -> None:
        """Have the machines of another cluster, or with tables of another size. What fails is told once."""
        if (address, hash_mb) != self._wanted:
            self._wanted = (address, hash_mb)
            self._notices.works(_NAME)
            self._leave()
            self._join()

    def retry(self) -> None:
        """Connect again, if that failed or the cluster was lost."""
        if self._team is None or not self._team.is_there:
            self._leave()
            self._join()

    def forget(self) -> None:
        """As for another game."""
        if self._team is not None:
            self._team.forget()

    def search(self, supervisor: Supervisor, request: SearchRequest) -> Result:
        """With the machines that there are, or without any."""
        if self._team is None:
            return supervisor.search(request)
        from psearch.joint.search import search_together

        return search_together(supervisor, self._team, request)

    def _join(self) -> None:
        address, hash_mb = self._wanted
        if not address or self._is_closed:
            return
        from psearch.joint.team import Team

        try:
            team = self._team = Team(address, hash_mb, on_note=self._notices.tell)
            team.wait(lambda: self._is_closed)
        except PsearchError as error:
            self._leave()
            self._notices.fails(_NAME, f"{_NAME}: {error}; going on without")
        else:
            self._notices.works(_NAME)
            names = ", ".join(f"{member.name} with {member.threads}" for member in team.members)
            self._notices.tell(f"{_NAME}: {len(team.members)} more, threads of each: {names}")

    def _leave(self) -> None:
        team, self._team = self._team, None
        if team is not None:
            team.close()
