"""Which crew a farm works with."""

from __future__ import annotations

from collections.abc import Sequence

from psearch.farm.crew import Crew
from psearch.farm.hand import HandSettings


def make_crew(hands: int, settings: HandSettings, cores: Sequence[int] | None = None, nice: int = 0) -> Crew:
    """So many hands; see `LocalCrew`. Raises PsearchError when they cannot be had."""
    from psearch.farm.local import LocalCrew

    return LocalCrew(hands, settings, cores=cores, nice=nice)
