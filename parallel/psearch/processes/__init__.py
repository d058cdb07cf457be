"""Worker processes, from the start to the answer. Imports the trace and what is below it, never the simulation.

Begin with `supervisor`, which runs one search at a time; then `watch`, one search seen from the program, and
`worker_main`, the same from the child. A search is a `request`; what the workers find comes through `search_reports`,
in the `result_words` of chess or of another game; its last lines are made whole by `line_completion`. `control` steers
it from outside, and `time_manager` is its clock.

`pool` has the workers and the memory that they share: when one is lost, or stalls, all are replaced by others with the
same table, and where no process can be had this one searches alone. `wake` ends its waits from outside. `tasks` has
processes that do other work, `perft_tasks` for one.

Both are users of `child`: a process seen from the program, its messages, its end, and whether it still runs; how long
anything is waited for is in `patience`. `starting` starts it, `lifetime` ends it with its parent, and `program_signals`
keeps from it what is for the program. See docs/design/processes.md.
"""
