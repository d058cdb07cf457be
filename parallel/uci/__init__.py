"""The UCI engine (docs/guides/uci.md). Imports the engine and what is below it, neither analysis nor studies.

Begin with `conversation`, the thread that reads, and what it imports: `options`, `position`, `go_command`, `numbers`,
and `go`, the state of one command from its words to its answer. Nothing of that is heavy. `player` does what takes time
in a second thread, which imports `resources` (workers, tables, book), `turn` (one search), `messages` and `extras`
(perft, eval, bench). `strength` plays below full strength.
"""
