"""A trace of a search as a file in the Trace Event format (docs/guides/trace.md). Imports the arena and what is below
it.

Begin with `recorder`, which reads the workers' logs; `timeline` makes slices of time of them, `trace_file` writes
the file.
"""
