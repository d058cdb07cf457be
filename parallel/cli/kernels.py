"""The compiled search, for the commands that need it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from psearch.core.kernels import Group


def prepare_kernels(*groups: Group) -> None:
    """Load the kernels of every search, and of these groups; compile them on the first run, with the progress on
    stderr."""
    from psearch.scheduler.entries import load_kernels
    from psearch.terminal.status import StatusLine

    with StatusLine() as status:
        load_kernels(*groups, progress=status)
