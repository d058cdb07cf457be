"""Worker processes, from the start to the answer. Imports the trace and what is below it, never the simulation.

Begin with `supervisor`, which runs one search or perft (`perft_tasks`) at a time; then `watch`, one search seen from
the program, and `worker_main`, the same from the child. A search is a `request`; what the workers find comes through
`search_reports`, in the `words` of chess or of another game; its last lines are made whole by `line_completion`.
`control` steers it from outside, and `time_manager` is its clock.

When a worker is lost, or stalls (`heartbeat`), all are replaced by others with the same table (`search_workers`), and
where no process can be had this one searches alone (`inline`).

Below that `pool` talks to the workers of one arena, and `wake` ends its waits from outside. They are made by
`starting`; `worker_process` is one of them seen from the program, `lifetime` ends each with its parent, and
`program_signals` keeps from them what is for the program.

Processes that do other tasks are in `tasks`. See docs/design/processes.md.
"""
