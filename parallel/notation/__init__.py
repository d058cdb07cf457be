"""Chess as text and files, and files that survive a kill, in plain Python; imports nothing above it and no kernels.

`fen` reads positions as users write them, `source` text files as users name them, `epd` and `perft_epd` suites,
`polyglot` books, `syzygy` endgame tables at the root; `report` words results; `wdl` turns scores into chances by the
fitted `wdl_model`. `journal` is a file of JSON lines that is only appended to, `atomic_file` one that is
replaced whole.
"""
