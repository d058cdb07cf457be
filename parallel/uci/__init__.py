"""The UCI engine (docs/guides/uci.md). Imports the engine and what is below it, neither analysis nor studies.

Begin with `conversation`, the thread that reads, and what it imports: `streams`, standard input and output, `options`,
`position`, `go_command`, `numbers`, `help`, `notices`, what there is to tell, and `go`, the state of one command from
its words to its answer. Nothing of that is heavy. `player` does what takes time in a second thread, which imports
`resources` (with `workers`, `files` that options name, and `cluster`), `turn` (one search), `messages` and `extras`
(perft, eval, bench).
`strength` plays below full strength.
"""
