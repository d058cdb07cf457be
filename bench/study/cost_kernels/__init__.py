"""Kernels with which `calibrate.py` measures what virtual time charges.

`micro_costs` are loops around single operations; `timed_nodes` and `timed_locks` search and time themselves, with the
records of `timings`; `cost_entries` names the groups of kernels.
"""
