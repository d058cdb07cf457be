"""Worker processes, from their start to the answer. Imports the trace and what is below it, never the simulation.

Begin with `supervisor`, which runs one search at a time. `watch` runs one search in the program, `worker_main` is the
worker's side of it. `request` describes a search, `search_reports` turns the workers' reports into a result, and
`line_completion` extends its lines from the table. `control` lets other threads stop a search; `time_manager` is its
clock. `pool` owns the workers and their shared memory: when one is lost or stalls, it replaces all of them and keeps
the table; where the system grants no process, the calling thread searches alone.

Processes for other work: `tasks` has the messages, and the code that runs inside such a process; `task_processes`
starts them and distributes a list of tasks, for example that of `perft_tasks`.

All of them use `child`, the program's view of a child process, and the waiting times in `patience`. `starting` starts
a process by a fork or through the `fork_server`; `lifetime` forks it and lets it end with its parent. See
docs/design/processes.md.
"""
