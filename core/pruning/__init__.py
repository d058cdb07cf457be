"""Selective search: what is left out, reduced or extended. Imports the rooms below it (board, evaluation, ordering),
never the search. Begin with `decisions`, about nodes and about moves; `modes` has the record of switches and margins
with its values in each mode, `parameters` what each of them means, `sound` the pruning that is a proof
(docs/design/soundness.md).
"""
