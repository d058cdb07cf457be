"""Worker processes, from the start to the answer. Imports the trace and what is below it, never the simulation.

Begin with `supervisor`, which runs one search at a time; then `watch`, one search seen from the program, and
`worker_main`, the same from the child. A search is a `request`; what the workers find comes through `search_reports`,
and its last lines are made whole by `line_completion`. `control` steers it from outside, and ends waits;
`time_manager` is its clock. `pool` has the workers and the memory that they share: when one is lost, or stalls, all are
replaced by others with the same table, and where no process can be had this one searches alone.

Processes that do other work: `tasks` is what they and the program tell each other, and one of them from inside,
`task_processes` starts them and shares out a list of tasks, of which `perft_tasks` is one.

All are users of `child`: a process seen from the program, its messages, its end, and whether it still runs; how long
anything is waited for is in `patience`. `starting` starts it, by a fork or by the `fork_server`; `lifetime` is how it
is forked, and ends with its parent. See docs/design/processes.md.
"""
