"""The commands: each module is one.

`search_command` is `psearch FEN`; then `game_command`, `analyse_command`, `perft_command`,
`bench_command`, `uci_command`, `serve_command`, `version_command`, `completion_command`, `verify_sound_command`,
`leaves_command`; and those that measure: `speedup_command`, `simulate_command`, `predict_command`.
"""
