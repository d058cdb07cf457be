"""The commands. May import everything, but what is heavy only when it is needed: `--help` answers at once.

Begin with `main`, which finds a command in `command_list` (and what was meant where a name is not quite one) and
catches `signals`. Each command is a module of `commands`. What they share: `arguments`, and numbers as arguments;
`kernels` to be loaded, and traces of what they did; `output` for what is written, and the exit status; `analyses` for
`psearch analyse`; `study` for the commands that measure.
"""
