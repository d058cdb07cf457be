"""The UCI engine (docs/guides/uci.md). Imports the engine and what is below it, neither analysis nor studies.

Begin with `conversation`, the thread that reads, which imports nothing heavy, with `options` and `go`. `player` is
the thread that searches, `strength` plays below full strength.
"""
