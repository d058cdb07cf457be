"""The analysis of suites, games and JSON lines from files (docs/guides/analyse.md). Imports `psearch.batch.positions`
and the rooms below it.

Begin with `analyser`, which sends positions to a pool of workers and returns the answers in the order of the input.
`suite_results` and `games` choose the positions, and interpret the answers for moves, players and suites; `reviews` is
the way to both for Python programs. `tables` writes rows as CSV or Parquet. `analysis_files` reads positions and the
results of earlier runs, and writes the result and the journal, with which an interrupted run continues.
"""
