"""The kernels that every search needs."""

from __future__ import annotations

from psearch.core import kernels
from psearch.core.entries import CHESS
from psearch.core.kernels import Progress as Progress
from psearch.scheduler.entries import SEARCH


def load_kernels(progress: Progress | None = None) -> float:
    """Make them callable; compiles on the first run, with one line at a time to `progress`. Returns seconds."""
    return kernels.load(CHESS, SEARCH, progress=progress)
