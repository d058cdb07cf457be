"""Chess: positions, legal moves, and what the rules say of them. Imports the ground of `psearch_core` and its
records.

Begin with `position` (making moves, and what is kept up to date) and `movegen` (only legal moves, and perft). `attacks`
has small helpers on squares and looks attacks up, with `magics` where there is no pext; `checks` and `draws` answer one
question each; `bridge` turns python-chess's boards into positions and back.
"""
