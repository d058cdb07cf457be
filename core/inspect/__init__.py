"""Entries for tests that look into single kernels: `position` (moves, attacks), `node` (the order of moves,
evaluation, the table) and `pruning` (the decisions of selective search). May import all of `psearch.core`; nothing
that plays imports it.
"""
