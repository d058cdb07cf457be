"""The commands. May import everything, but what is heavy only when it is needed: `--help` answers at once.

Begin with `main`, which finds a command in `commands` (`guesses` has what was meant where it is not quite one), catches
`signals` and ends with an `exit_status`. Each command is a module: `search` (`psearch FEN`, with the arguments of its
`root`), `stats`, `analyse` (`analyse_suites`, `analyse_games` and `analyse_lines`, each in an `analysis_session`),
`perft`, `bench`, `uci`, `serve`, `version`, `completion`, `verify_sound`, `leaves`; and those that measure, which share
`study`: `speedup`, `simulate`, `predict`; `calibrate`. For all of them: `arguments` that several have, `numbers` as
arguments, `traces` for `--trace`, `kernels` to be loaded, `output` for what is written.
"""
