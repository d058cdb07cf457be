"""The commands. May import everything, but what is heavy only when it is needed: `--help` answers at once.

Begin with `main`, which finds a command in `command_list` (`guesses` has what was meant where it is not quite one),
catches `signals`, runs a user's kernels `apart` and ends with an `exit_status`. Each command is a module of `commands`.
What they share: the arguments of a search about its root (`root_arguments`); `analyse_suites`, `analyse_games` and
`analyse_lines`, each in an `analysis_session`; `study`, for those that measure; and for all of them `arguments` that
several have, `numbers` as arguments, `traces` for `--trace`, `kernels` to be loaded, `output` for what is written.
"""
