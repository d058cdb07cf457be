"""Orders moves.

Begin with `movepick`, which gives a node's moves in stages; `history` learns from cutoffs, `see` evaluates exchanges on
a square.
"""
