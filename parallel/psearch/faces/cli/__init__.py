"""The command line. It may import everything, but heavy modules only when they are needed, so that `--help` is quick.

Start reading at `main`: it looks up a command in `command_list`, which also suggests corrections, and handles
`signals`. Each command is a module of `commands`. They share `arguments` (declarations and conversions), `kernels`
(loading them, traces), `output` (streams, exit status), `analyses` (for `psearch analyse`) and `study` (for the
commands that measure).
"""
