"""Traces of searches as files in the Trace Event format (docs/guides/trace.md). Imports the arena and what is below it.

Begin with `recorder`, which converts the workers' logs to slices of time; `trace_file` writes them to a file.
"""
