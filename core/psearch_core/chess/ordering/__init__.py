"""The order of moves. Imports the ground, the records, `psearch_core.chess.board` and `psearch_core.chess.evaluation`.

Begin with `movepick`, the stages in which a node's moves come; `history` is what cutoffs teach, `see` what an
exchange on one square is worth.
"""
