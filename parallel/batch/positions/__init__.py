"""Many positions, shared out to hands (docs/design/farm.md). Knows psearch's engine, and nothing of files or of the
command line.

Begin with `jobs`: what is searched, and what comes of it, as plain data (`boards` has its positions as boards).
`dispatch` decides who gets what, and what is done again after a loss; it is plain logic that neither waits nor has a
clock of its own. `crew` are those who do the work, here or on a cluster, and `flow` leads from one to the other. A
`hand` answers positions one by one, in a `hand_process` where it is on this machine, and by `comparing` says whether a
move of a game was worse than another.

`many` is `psearch.analyse_many`, with the `given_positions` that it takes and the `answers` that it gives.
"""
