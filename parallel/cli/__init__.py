"""The commands. May import everything, but what is heavy only when it is needed: `--help` answers at once.

Begin with `main`: which command, what exit status. `common` and `arguments` are shared; `search` has the options of
the root; `analyse`, `stats`, `verify_sound`, `leaves` and `completion` are commands, `studies` those that measure,
with `study_arguments`.
"""
