"""What a terminal shows. Imports `psearch.text`, no kernels. rich takes long to import: only what draws needs it.

`display` shows a search while it runs, by lines or by the `live_display`, which is `shrinkable`; `status` is one line
on stderr, with the time left; `analysis_display` the bar of a long analysis; `board_drawing` a position; `table` the
plain tables of studies and commands; `streams` says who reads.
"""
