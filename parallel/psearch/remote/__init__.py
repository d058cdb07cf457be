"""Processes on other machines, by Ray (docs/guides/cluster.md). Knows nothing of chess.

`cluster_processes` is the program's side: processes that do tasks as those of this machine do. It starts `ray_driver`,
a child process in which alone Ray runs. There `ray_actors` decides where actors start, what they are given and
which of them are lost; each is a `task_actor`, which compares the code of two machines and takes modules along.
"""
