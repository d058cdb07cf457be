"""A search as it runs, and searches in virtual time, as plain data for a picture. Knows of no page and no server.

Begin with `watcher`, which samples a search that runs in other processes: `tracks` makes segments of time of the
workers' logs, `open_nodes` a tree of the open split nodes, read from the memory without a lock, whose `node_lines`
python-chess has checked, or a user's game. `laboratory` is a position in virtual time under two policies, or a trace
that psearch has written, in a process of its own (`job`).
"""
