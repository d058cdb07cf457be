"""Selective search: what is left out, reduced or extended. Imports the rooms below it (board, evaluation, ordering),
never the search.

Begin with `node_pruning` (decisions when a node is entered) and `move_pruning` (whether a move is left out, how deep it
is searched); `sound` is the pruning that is a proof (docs/design/soundness.md). `counters` count what each does.
Switches, margins and modes are declared in `psearch_core.records.pruning_record`.
"""
