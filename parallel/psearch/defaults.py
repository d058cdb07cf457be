"""Limits and defaults that several rooms, and users, need to know; plain numbers and names, no imports."""

from __future__ import annotations

MAX_THREADS = 1024
MAX_DEPTH = 100
"""Plies of nominal depth, for a search and for perft."""
DEFAULT_HASH_MB = 256
"""MiB of transposition table of a search. Ten seconds of one worker do not fill it, and eight engines have room beside
each other; the same on every machine, so that counts are."""
JOB_HASH_MB = 64
"""MiB of table for each of many jobs, whose tables are emptied between positions, and for studies."""
MAX_HASH_MB = 2**24
"""MiB of transposition table."""
DEFAULT_MOVETIME_MS = 5_000
"""How long a search without any limit takes."""
MAX_MOVETIME_MS = 1_000_000_000
"""Eleven days."""
MAX_NODES = 2**62
"""What a search or a check of perft counts can be limited to: counters have 64 bits."""

POLICY_NAMES = ("serial", "root", "ybw", "knuth", "garms", "kannan", "felten", "calibrated", "lazy", "abdada")
"""How work can be split; see `psearch.scheduler.policy`. Its numbers, options, help and tests follow from this list."""
PREDICTING_POLICIES = ("knuth", "garms", "kannan", "felten", "calibrated")
"""Policies that predict types of nodes and go by them; the others expect what garms does
(`psearch.scheduler.policies`). What judges predictions goes through this list."""
DEFAULT_POLICY = "calibrated"
STUDY_DRIVERS = ("pvs", "null")
"""Drivers that a study may use. All searches of a study use the same one; the first is the default."""
DRIVERS = ("auto", *STUDY_DRIVERS)
"""How the value of the root is found: by principal variation search, by null windows, or by one of them, which the
number of workers decides."""
DEFAULT_DRIVER = "auto"
PROVING_WORKERS = 8
"""Workers from which on `auto` takes null windows, for one line."""
MANY_ROOTS_WORKERS = 8
MANY_ROOTS = 4
"""Workers from which on `auto` has several roots, for one line and no depth, and how many roots these are."""
EVALUATIONS = ("auto", "net", "classic")
"""What evaluates positions: what the pruning mode says, the network, or the handwritten evaluation."""
DEFAULT_EVALUATION = "auto"
