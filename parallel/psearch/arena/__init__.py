"""The shared memory of a search. Imports the scheduler and `psearch_core`.

Begin with `arena`, which lays out blocks taken from `blocks` (docs/design/memory.md); `setup` writes a search into it,
of chess or of another `subject`, `validate` checks all invariants of an arena at rest, `table_entries` looks into its
transposition table; `info_ring` takes out what the search has reported.
`owner` keeps forks of the program away from what is the program's own.
`control_groups` tells what the system allows this process to take, `system_calls` calls what a Python may lack.
"""
