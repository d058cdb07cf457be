"""What a terminal shows. Imports `psearch.text`, no kernels. rich takes long to import: only what draws needs it.

`streams` says who reads, and lays out plain text and tables; `status` is one line on stderr, with the time left;
`display` shows a search while it runs, in lines or by `live_display`, which also has the bar of a long analysis and the
drawing of a position.
"""
