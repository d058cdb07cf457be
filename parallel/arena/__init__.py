"""The shared memory of a search. Imports the scheduler and `psearch.core`.

Begin with `arena`, which takes the memory and lays it out (docs/design/memory.md); `setup` writes a search into it,
`validate` checks all invariants of an arena at rest.
"""
