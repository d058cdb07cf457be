"""Many positions, shared out to hands (docs/design/farm.md). Knows psearch's engine, and nothing of files or of the
command line.

Begin with `jobs`: what is searched, and what comes of it, as plain data (`boards` has its positions as boards).
`dispatch` decides who gets what, and what is done again after a loss; it is plain logic that neither waits nor has a
clock of its own. `crew` are those who do the work, and `flow` leads from one to the other. A `hand` answers positions
one by one, and by `comparing` says whether a move of a game was worse than another; `local` are hands that are
processes of this machine (`hand_process`), `remote` those of a cluster; `crews` chooses.

`many` is `psearch.analyse_many`, with the `given_positions` that it takes and the `answers` that it gives.
"""
