"""Many positions, shared out to worker processes (docs/design/positions.md). Knows psearch's engine, and nothing of
files or of the command line.

Begin with `task`: what is searched and what was found, as plain data, also as JSON. `task_queue` decides which worker
does what, and what is done again after a loss; it is plain logic that neither waits nor reads a clock.
`position_pool` has the workers, which search positions one by one, here or on a cluster, and the loop between them and
the queue. `comparing` says whether a move of a game was worse than another. `many` is `psearch.analyse_many`.
"""
