"""The compiled search, for the commands that need it."""

from __future__ import annotations


def prepare_kernels() -> None:
    """Load the compiled kernels; compile them on the first run, with the progress on stderr."""
    from psearch.kernels import load_kernels
    from psearch.terminal.status import StatusLine

    with StatusLine() as status:
        load_kernels(progress=status)
