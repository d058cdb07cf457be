"""Many workers in one process: virtual time, and the round robin of the tests. Imports the trace and what is below
it, never the processes. Begin with `simulator`, the Python face of `driver`, whose clock runs by `costs`; `entries`
is what Python calls of it; `fleet` has several simulators and a network between them; `round_robin` lets workers take
turns in an order drawn from a seed. See docs/design/simulator.md.
"""
