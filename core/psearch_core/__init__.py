"""Chess, and the search inside one node. Knows nothing of processes or scheduling."""

PRUNING_MODES = ("plain", "sound", "ael", "modern")
"""Names of the modes of selective search (`psearch_core.records.pruning_record`); this module imports nothing."""
DEFAULT_PRUNING = "modern"
