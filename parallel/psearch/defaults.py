"""Limits and defaults that several rooms share: plain numbers and names, without imports."""

MAX_THREADS = 1024
MAX_DEPTH = 100
"""Largest nominal depth of a search or of perft, in plies."""
DEFAULT_HASH_MB = 256
"""Size of a search's transposition table, in MiB. One worker does not fill it in ten seconds, and eight engines fit on
one machine. It does not depend on the machine, so node counts do not either."""
JOB_HASH_MB = 64
"""Size of the transposition table of a study, in MiB, and the largest default for each of many searches, whose tables
are emptied between positions."""
MAX_HASH_MB = 2**24
"""Largest size of a transposition table, in MiB."""
REVIEW_MOVETIME_MS = 1_000
"""Time for each position of an analysis if no limit is given, in milliseconds."""
DEFAULT_MOVETIME_MS = 5_000
"""Duration of a search without any limit, in milliseconds."""
MAX_MOVETIME_MS = 1_000_000_000
"""Largest limit of time, in milliseconds: eleven days."""
MAX_NODES = 2**62
"""Largest limit of nodes, for a search and for checks of perft; counters have 64 bits."""

POLICY_NAMES = ("serial", "root", "ybw", "knuth", "garms", "kannan", "felten", "calibrated", "lazy", "abdada")
"""Names of the policies that split work (`psearch.scheduler.policy`). Their numbers, options, help and tests follow
from this list."""
PREDICTING_POLICIES = ("knuth", "garms", "kannan", "felten", "calibrated")
"""Policies that predict node types and act on them; the other policies record the types that `garms` predicts
(`psearch.scheduler.policies`). Studies of predictions compare these."""
DEFAULT_POLICY = "calibrated"
STUDY_DRIVERS = ("pvs", "null")
"""Drivers that a study may use. All searches of a study use the same one; the first is the default."""
DRIVERS = ("auto", *STUDY_DRIVERS)
"""Ways to find the value of the root: principal variation search, null windows, or `auto`, which chooses by the number
of workers."""
DEFAULT_DRIVER = "auto"
PROVING_WORKERS = 8
"""Least number of workers for which `auto` uses null windows, when one line is wanted."""
MANY_ROOTS_WORKERS = 8
MANY_ROOTS = 4
"""Number of roots that `auto` searches at once with at least `MANY_ROOTS_WORKERS` workers, when one line and no depth
is wanted."""
EVALUATIONS = ("auto", "net", "classic")
"""Evaluation functions: the one that the pruning mode names, the network, or the handcrafted evaluation."""
DEFAULT_EVALUATION = "auto"
