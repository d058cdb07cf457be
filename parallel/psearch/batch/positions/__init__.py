"""Many positions, distributed to worker processes (docs/design/processes.md). Uses psearch's engine, but no files and
no command line.

Begin with `task`, which has tasks and answers as plain data and as JSON. `task_queue` decides which worker gets which
task, and which tasks are repeated after a loss; it is plain logic that neither waits nor reads a clock. `position_pool`
has the workers, which search positions one by one, here or on a cluster, and the loop between them and the queue.
`comparing` decides whether a move of a game was worse than the best one. `many` is `psearch.analyse_many`.
"""
