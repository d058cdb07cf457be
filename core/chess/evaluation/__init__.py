"""Evaluates a position. Imports the ground, the records and `psearch.core.chess.board`; docs/design/evaluation.md
has the terms.

Begin with `evaluate`, which adds up `pawns`, `pieces`, `king` and `threats`, with the scale from `endgames`, with
`kpk`, a table of king and pawn against king. `weights` are fitted and generated.
"""
