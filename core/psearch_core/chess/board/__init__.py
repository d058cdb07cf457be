"""Chess: positions, legal moves, and what the rules say of them. Imports the ground of `psearch_core` and its
records.

Begin with `position` (making moves, and what is kept up to date) and `movegen` (only legal moves). `attacks` looks
attacks up, with `magics` where there is no pext; `bits` are small helpers, `zobrist` the keys; `checks`, `draws` and
`mate_in_one` answer one question each; `perft` counts; `bridge` turns python-chess's boards into positions and back.
"""
