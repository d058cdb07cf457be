"""Parameters of the win, draw and loss model (`wdl.py`). Written by bench/tuning/fit_wdl.py: change that, not this.

Fitted on 27,000 positions of TCEC games (tcec_positions.txt.xz, seed 1),
each searched by one worker for 50,000 nodes. Log loss on 3,000 held-out positions:
frequencies alone 0.9759, score, not material 0.8238, score and material 0.7873.
"""

MATERIAL_KNOTS = (16, 26, 36, 50, 64, 78)
"""pawn units of both sides together"""
DRAW_MARGIN_CP = (311.5, 148.1, 164.8, 165.5, 190.4, 206.3)
"""a: the score at which half of the games are won"""
SPREAD_CP = (108.6, 60.2, 73.1, 97.4, 144.5, 155.5)
"""b: the scale of the logistic curves"""
