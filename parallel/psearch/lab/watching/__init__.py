"""Running searches, and searches in virtual time, as plain data for pictures, independent of the page and the server.

Start reading at `watcher`, which samples a search that runs in other processes. `tracks` turns the workers' logs into
segments of time; `open_nodes` reads the tree of open split nodes from shared memory without a lock; `node_lines`
checks its moves with python-chess or the user's game. `recordings` keeps what was seen in files. `laboratory` compares
policies in virtual time, or reads a trace, in a separate process (`job`).
"""
