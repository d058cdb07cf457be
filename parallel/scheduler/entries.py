"""What Python calls of the search, in machine code; numba is not needed for it."""

from __future__ import annotations

from psearch.core.kernels import Group

SEARCH = Group("search", "psearch.scheduler.root", "psearch.scheduler.work", "psearch.scheduler.trace_log")
begin_search = SEARCH.entry("begin_search")
request_stop = SEARCH.entry("request_stop")
work = SEARCH.entry("work")
read_cycles = SEARCH.entry("read_cycles")

PREDICTION = Group("prediction", "psearch.scheduler.policy")
merge_now = PREDICTION.entry("merge_now")
