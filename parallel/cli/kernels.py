"""The compiled search, for the commands that need it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from psearch.cli.output import complain

if TYPE_CHECKING:
    from psearch.core.kernels import Group


def prepare_kernels(*groups: Group) -> None:
    """Load the kernels of every search, and of these groups; compile them on the first run, with the progress on
    stderr. Raises PsearchError when they cannot be had."""
    from psearch.scheduler.entries import load_kernels
    from psearch.terminal.status import StatusLine

    problems: list[str] = []
    with StatusLine() as status:
        load_kernels(*groups, progress=status, warn=problems.append)
    for text in problems:
        complain(text)
