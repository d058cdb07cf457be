"""Suites, games and JSON lines from files (docs/guides/analyse.md). Imports `psearch.batch.positions` and what is below
it.

Begin with `analyser`: positions for a pool of workers, and their answers in the order of the input. `suite_results` and
`games` say which positions, and what the answers mean for moves, players and suites. `analysis_files` reads positions
and what an earlier run has written, and has the journal, by which an interrupted run goes on, and the result.
"""
