"""Kernels of the search that Python calls as machine code, without numba."""

from __future__ import annotations

from psearch.results import PsearchError
from psearch_core.chess.chess_entries import CHESS
from psearch_core.toolchain import groups
from psearch_core.toolchain.groups import Group, KernelError, Progress

SEARCH = Group("search", "psearch.scheduler.iterations", "psearch.scheduler.work", "psearch.scheduler.trace_log")
begin_search = SEARCH.entry("begin_search")
request_stop = SEARCH.entry("request_stop")
set_deadline = SEARCH.entry("set_deadline")
work = SEARCH.entry("work")
is_done = SEARCH.entry("is_done")
reports_written = SEARCH.entry("reports_written")
read_cycles = SEARCH.entry("read_cycles")

PREDICTION = Group("prediction", "psearch.scheduler.policy")
merge_now = PREDICTION.entry("merge_now")


def load_kernels(*more: Group, progress: Progress | None = None) -> float:
    """Load the groups that every search needs, and these; return seconds. See `psearch_core.toolchain.groups.load`.

    Raises PsearchError if they cannot be loaded.
    """
    try:
        return groups.load(CHESS, SEARCH, *more, progress=progress)
    except KernelError as error:
        raise PsearchError(str(error)) from error
