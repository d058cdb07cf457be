"""Suites, games and JSON lines from files (docs/guides/analyse.md). Imports `psearch.batch.positions` and what is below
it.

Begin with `analyser`: positions for a pool of workers, and their answers in the order of the input. `suite_results` and
`games` say which positions and what becomes of the answers; `judgement` is what they say of the moves of a game and of
its players. `json_lines` reads positions and what an earlier run has written; `analysis_files` are the journal, by
which an interrupted run goes on, and the result.
"""
