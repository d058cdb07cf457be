"""Evaluates a position, by a network or by hand. Imports the ground, the records and `psearch_core.chess.board`;
docs/design/network.md and docs/design/evaluation.md say what is computed.

Begin with `network`, whose weights `network_file` reads, and with `evaluate`, which by hand adds up `pawns`, `pieces`
and `threats`, with the scale from `endgames`. `weights` are fitted and generated.
"""
