"""The compiled search, for the commands that need it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from psearch.core.kernels import Group


def prepare_kernels(*groups: Group) -> None:
    """Load the kernels of every search, and of these groups; compile them on the first run, with the progress on
    stderr."""
    from psearch.core import kernels
    from psearch.core.entries import CHESS
    from psearch.scheduler.entries import SEARCH

    wanted = (CHESS, SEARCH, *groups)
    if kernels.is_cached(*wanted):
        kernels.load(*wanted)
        return
    from psearch.terminal.status import StatusLine

    with StatusLine() as status:
        kernels.load(*wanted, progress=status)
