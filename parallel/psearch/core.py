"""Names the package that `psearch.core` has become, for plug-ins written before."""

raise ImportError("psearch.core is the package psearch_core now: import psearch_core in its place")
