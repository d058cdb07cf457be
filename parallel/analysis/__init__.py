"""Suites and games from files (docs/guides/analyse.md). Imports the engine and what is below it, neither uci nor
studies.

Begin with `analyser`: one position after the other. `epd` and `pgn` say which positions and what becomes of the
answers; `judgement` is what they say of the moves of a game, `accuracy` of its players, whom `player_table` shows;
`json_objects` is for programs. `journal` makes an interrupted run go on, `output` is where the result goes.
"""
