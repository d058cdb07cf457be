"""Selective search: what is left out, reduced or extended. Imports the rooms below it (board, evaluation, ordering),
never the search.

Begin with `node_pruning` (decisions when a node is entered) and `move_pruning` (whether a move is left out);
`reductions` says how deep a move is searched, `sound` is the pruning that is a proof (docs/design/soundness.md).
`counters` count what each does. `modes` are the sets of switches and margins; these are declared in
`psearch_core.records.pruning_record`.
"""
