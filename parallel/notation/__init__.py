"""Chess as text and files, and files that survive a kill, in plain Python; imports nothing above it and no kernels.

`fen` reads positions and `moves` moves as users write them, `source` text files as users name them, `epd` and
`perft_epd` suites, `pgn` games, `polyglot` books, `syzygy` endgame tables at the root, from a `table_file`; `report`
words results; `wdl` turns scores into chances by the fitted `wdl_model`. `journal` is a file of JSON lines that is only
appended to, `atomic_file` one that is replaced whole, if it is of our `own_kind`.
"""
