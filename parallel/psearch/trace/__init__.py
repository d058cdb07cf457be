"""A trace of a search as a file in the Trace Event format (docs/guides/trace.md). Imports the arena and what is below
it.

Begin with `recorder`, which makes slices of time of the workers' logs; `trace_file` writes them to a file.
"""
