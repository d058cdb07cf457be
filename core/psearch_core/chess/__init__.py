"""Chess, and the search inside one node.

Begin with `board`; then `evaluation`, `ordering`, `pruning`, and `search`, which uses them all. `tables` and
`fill_tables` make the tables that every kernel reads; `chess_entries` lists the kernels that Python calls.
"""
