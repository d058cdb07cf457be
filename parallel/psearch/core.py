"""Tells older plug-ins that `psearch.core` has been renamed."""

raise ImportError("psearch.core is now the package psearch_core: import psearch_core instead")
