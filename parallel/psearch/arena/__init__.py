"""The shared memory of a search. Imports the scheduler and `psearch_core`.

Begin with `arena`, which lays out blocks taken from `blocks` (docs/design/memory.md); `setup` writes a search into it,
of chess or of another game, `validate` checks all invariants of an arena at rest, `shared_results` takes out what the
search has reported, and looks into its transposition table. `control_groups` tells what the system allows this
process to take; `system_calls` calls what a Python may lack, and keeps forks away from what is the program's own.
"""
