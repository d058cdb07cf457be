"""Many workers in one process: virtual time, and the round robin of the tests. Imports the trace and what is below
it, never the processes. Begin with `simulator`, the Python face of `virtual_driver`, whose clock runs by `costs`;
`simulation_entries` is what Python calls of it; `round_robin` lets workers take turns in an order drawn from a seed.
See docs/design/simulator.md.
"""
