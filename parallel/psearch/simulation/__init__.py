"""Many workers in one process, in virtual time. Imports the trace and what is below it, never the processes.

Begin with `simulator`, the Python face of `virtual_driver`, whose clock runs by `costs`; `simulation_entries` is what
Python calls of it. See docs/design/simulator.md.
"""
