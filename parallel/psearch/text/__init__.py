"""Chess as text and files, in plain Python; imports nothing above it and no kernels.

`fen` reads positions and `moves` moves as users write them, `source` text files as users name them, `epd_text` and
`perft_epd` suites, `pgn_text` games, which `pgn_split` finds and whose words `movetext` knows, `polyglot` books,
`syzygy` endgame tables at the root, both from `file_bytes`; `values` checks numbers and texts; `report`
words results; `wdl` turns scores into chances by the fitted `wdl_model`.
"""
