"""The commands, one per module.

`search_command` is `psearch FEN`. The others are `game_command`, `analyse_command`, `perft_command`,
`bench_command`, `uci_command`, `serve_command`, `version_command`, `completion_command`, `verify_sound_command`,
`leaves_command`, and the commands that measure: `speedup_command`, `simulate_command`, `predict_command`.
"""
