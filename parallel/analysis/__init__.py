"""Suites, games and JSON lines from files (docs/guides/analyse.md). Imports the farm and what is below it, neither uci
nor studies.

Begin with `analyser`: positions for a farm, and their answers in the order of the input. `epd` and `pgn` say which
positions and what becomes of the answers; `judgement` is what they say of the moves of a game, `accuracy` of its
players, whom `player_table` shows; `json_objects` is for programs, `json_lines` what programs ask and are answered line
by line, `older_results` what an earlier run has written. `journal` makes an interrupted run go on, `output` is where
the result goes.
"""
