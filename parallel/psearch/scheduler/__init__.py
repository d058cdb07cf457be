"""How workers share a search: compiled, in shared memory, without a process of its own. Imports `psearch_core` only.

Begin with `step`, the state machine that every driver calls (`work` is its loop in a worker process), then `splitting`,
the life of an open node. `iterations` is the root and the end, with the windows of `root_windows`; `policy` decides
which nodes open, by the `policies` and the counters of `prediction`; `claims` keep workers with roots of their own
apart, `thread_vote` chooses among their answers; `words` are those that workers share without a lock; `trace_log`
records what happens; `scheduler_entries` is what Python calls. See docs/design/architecture.md.
"""
