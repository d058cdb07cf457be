"""The vote alone, among workers whose answers a test has written."""

from __future__ import annotations

from psearch.core.toolchain.jit import entry
from psearch.core.views import context_at, i64
from psearch.scheduler.thread_vote import elected


@entry(i64(i64))
def elect(context):
    return elected(context_at(context))
