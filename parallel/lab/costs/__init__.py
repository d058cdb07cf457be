"""Measures what virtual time charges: `psearch calibrate`.

Begin with `calibration`, which runs the loops of `micro_costs`; `sharing_costs` measures what it costs to share, in
searches that time themselves (`timed_nodes`, `timed_locks`, with their layouts in `timings`); `cost_entries` names
the groups of kernels.
"""
