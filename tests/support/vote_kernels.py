"""The vote alone, among workers whose answers a test has written."""

from __future__ import annotations

from psearch.scheduler.thread_vote import elected
from psearch_core.toolchain.jit import entry
from psearch_core.views import context_at, i64


@entry(i64(i64))
def elect(context):
    return elected(context_at(context))
