"""Output on a terminal. It imports `psearch.text`, but no kernels, and the slow rich only for drawing.

`streams` recognizes terminals and lays out text and tables; `status` is a status line on stderr; `display` shows a
running search, as lines or by `live_display`, which also draws progress bars and positions.
"""
