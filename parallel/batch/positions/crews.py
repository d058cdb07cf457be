"""Which crew a farm works with."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from psearch.api.api_log import LOG
from psearch.batch.positions.crew import Crew
from psearch.batch.positions.hand import HandSettings


def make_crew(
    hands: int,
    settings: HandSettings,
    cores: Sequence[int] | None = None,
    nice: int = 0,
    cluster: str | None = None,
    on_note: Callable[[str], None] = LOG.warning,
) -> Crew:
    """So many hands; see `LocalCrew`. Or at most so many of a cluster, by its address; see `ClusterCrew`.

    on_note: called with a line for people when a hand was lost. Raises PsearchError when hands cannot be had.
    """
    if cluster is not None:
        from psearch.batch.positions.remote import ClusterCrew

        return ClusterCrew(cluster, settings, hands, on_note)
    from psearch.batch.positions.local import LocalCrew

    return LocalCrew(hands, settings, cores=cores, nice=nice, on_note=on_note)
