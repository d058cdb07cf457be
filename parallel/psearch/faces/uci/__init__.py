"""The UCI engine (docs/guides/uci.md). Imports the engine and what is below it, neither analysis nor studies.

Begin with `uci_conversation`, the thread that reads, and what it imports: `uci_streams`, standard input and output,
`uci_options`, and `go`, one command from its words to its answer. Nothing of that is heavy. `player` does what takes
time in a second thread, which imports `resources` (and `psearch.searcher`) and `turn`: one search, its lines, perft and
eval. `strength` plays below full strength.
"""
