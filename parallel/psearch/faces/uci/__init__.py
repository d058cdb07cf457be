"""The UCI engine (docs/guides/uci.md). It imports the searcher and the layers below, but no analysis and no studies.

Start reading at `uci_conversation`, the thread that reads commands. It imports only light modules: `uci_streams`
(standard input and output), `uci_options` and `go` (a command from its words to its answer). `player` runs slow jobs
in a second thread, which imports `resources` (what lasts between searches) and `turn` (one search, perft, eval).
"""
