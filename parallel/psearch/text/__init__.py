"""Chess as text and files, in plain Python; imports nothing above it and no kernels.

`fen` reads positions and `moves` moves as users write them, `source` text files as users name them, `epd_text` suites,
`pgn_text` games, `chess_files` opening books and endgame tables; `values` checks numbers and texts; `report` words
results; `wdl` turns scores into chances by the fitted `wdl_model`.
"""
