"""Work for hands on other machines, by Ray (docs/guides/cluster.md). Knows nothing of chess.

Begin with `link`: it starts the `ray_driver`, a process of its own in which alone Ray runs, and exchanges messages with
it: work for hands, and what becomes of it, as `psearch.processes.tasks.task_messages` have it for all processes that do
tasks, and those about nodes in `driver_messages`. Ray prints where it likes, has dozens of threads, sets signal
handlers and ends its process when the cluster is gone; none of that may happen to the program.

In the driver `ray_nodes` decides: which nodes may work, where hands begin, what was lost and when a hand has stalled.
It is plain logic on a clock that is given to it. `ray_cluster` is Ray as it sees it, the only module that
imports it. A node is first asked by `probe` who it is (`identity`); a hand there is an `actor`, and `sources` of
modules may go along.

`address` is what `--on` may be, `loopback` where Ray looks for it on this machine. `shared_tasks` shares out any list
of tasks: games, jobs of a study. `standing` is who is there.
"""
