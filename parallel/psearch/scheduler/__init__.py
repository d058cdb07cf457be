"""Shares a search among workers, by compiled kernels in shared memory; starts no process.

Begin with `step`, the state machine that every driver calls (`work` is its loop in a worker process), then `splitting`,
the life of an open node. `iterations` handles the root and the end of a search, with windows by `root_windows`;
`policy` decides which nodes open, by `policies` and the counters of `prediction`; `claims` makes workers with separate
roots search different positions, and `thread_vote` chooses among their answers. `words` has the words that workers
share without a lock; `trace_log` records events; `scheduler_entries` lists the kernels that Python calls. See
docs/design/architecture.md.
"""
