"""Selective search: decides what is pruned, reduced or extended.

Begin with `node_pruning` (decisions when a node is entered) and `move_pruning` (whether a move is pruned, and how deep
it is searched); `sound` prunes with proof (docs/design/soundness.md). `counters` counts what each technique does.
`psearch_core.records.pruning_record` declares switches, margins and modes.
"""
