"""Chess, and what happens inside one node of the search. Knows nothing of processes or scheduling."""

PRUNING_MODES = ("plain", "sound", "ael", "modern")
"""Names of the modes of selective search (`psearch_core.records.pruning_record`); here, where nothing is imported."""
DEFAULT_PRUNING = "modern"
