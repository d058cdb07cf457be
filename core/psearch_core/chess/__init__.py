"""The game, and what happens inside one node of its search.

Begin with `board`; then `evaluation`, `ordering`, `pruning`, and `search`, which uses them all. `tables` and
`fill_tables` make what every kernel reads; `chess_entries` is what Python calls.
"""
