"""The shared memory of a search. Imports the scheduler and `psearch_core`.

Begin with `arena`, which lays out the memory that `blocks` takes from the system (docs/design/memory.md). `setup`
writes a search into it, of chess or of another game; `shared_results` reads reports and the transposition table;
`validate` checks all invariants of an arena at rest. `control_groups` returns the limits of memory and processor time;
`system_calls` calls functions that a Python may lack, and guards against the use of shared objects in a fork.
"""
