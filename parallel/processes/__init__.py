"""Worker processes, from the start to the answer. Imports the trace and what is below it, never the simulation.

Begin with `supervisor`, then `watch`, one search seen from the parent, and `worker`, the same from the child. Workers
are started by `launcher`, in programs with threads through the `fork_server`; `control` is what other threads may say
to a search, `time_manager` the clock. See docs/design/processes.md.
"""
