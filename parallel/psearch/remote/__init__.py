"""Processes on other machines, by Ray (docs/guides/cluster.md). Knows nothing of chess.

`cluster_processes` is the program's side, with the same interface as the processes of this machine. It starts
`ray_driver`, the only process in which Ray runs. There `ray_actors` starts actors on nodes, gives them tasks and
detects lost ones. Each is a `task_actor`, which checks that its node has the same code, and imports modules sent along.
"""
