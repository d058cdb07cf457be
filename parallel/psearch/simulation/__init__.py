"""Many workers in one process, in virtual time. Imports the trace and what is below it, never the processes.

Begin with `simulator`, the Python interface of `virtual_driver`, whose clock advances by `costs`; `simulation_entries`
has the compiled entries that Python calls. See docs/design/simulator.md.
"""
