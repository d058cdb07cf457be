"""What a terminal shows. Imports `psearch.notation`, no kernels.

`display` is the live table and the status line of a search, `analysis_display` the bar of a long analysis, `table`
the plain tables of studies and commands.
"""
