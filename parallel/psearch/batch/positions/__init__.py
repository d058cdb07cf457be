"""Many positions, shared out to worker processes (docs/design/positions.md). Knows psearch's engine, and nothing of
files or of the command line.

Begin with `task`: what is searched, as plain data, and `answer`: what was found, also as JSON. `task_queue` decides
which worker does what, and what is done again after a loss; it is plain logic that neither waits nor has a clock of its
own. `position_pool` has the workers, here or on a cluster, and the loop between them and the queue. A `position_worker`
searches positions one by one; `comparing` says whether a move of a game was worse than another.

`many` is `psearch.analyse_many`, and `position_result` what it gives.
"""
