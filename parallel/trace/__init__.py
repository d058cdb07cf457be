"""A trace of a search as a file in the Trace Event format (docs/guides/trace.md). Imports the arena and what is below
it.

Begin with `recorder`, which reads the workers' logs; `trace_file` is where the result goes.
"""
