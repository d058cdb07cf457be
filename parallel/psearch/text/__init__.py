"""Chess as text and files, in plain Python, without kernels.

`fen` reads positions and `moves` moves in all common notations; `source` opens text files (`packed` unpacks them),
`epd_text` reads suites, `pgn_text` games, `chess_files` opening books and endgame tables; `openings` names openings.
`values` checks numbers and texts, `report` writes results, `wdl` converts scores to winning chances by the fitted
`wdl_model`, `marks` judges moves by their scores.
"""
