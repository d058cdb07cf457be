"""Worker processes, from the start to the answer. Imports the trace and what is below it, never the simulation.

Begin with `supervisor`, which runs one search or `perft` at a time; then `watch`, one search seen from the program, and
`worker`, the same from the child. A search is a `request`; what the workers find comes through `reports`, whose
last lines are made whole by `lines`; `control` steers it from outside, and `time_manager` is its clock.

When a worker is lost, or stalls (`heartbeat`), all are replaced by others with the same table (`workers`), and where no
process can be had this one searches alone (`inline`).

Below that `pool` talks to the workers of one arena, and `wake` ends its waits from outside. They are started by
`launcher`: by `fork`, in programs with threads through `fork_client` by the `fork_server`; `worker_process` is one of
them seen from the program, `lifetime` ends each with its parent, and `signals` keeps from them what is for the program.
See docs/design/processes.md.
"""
