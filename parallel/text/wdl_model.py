"""Parameters of the win, draw and loss model (`wdl.py`). Written by bench/tuning/fit_wdl.py: change that, not this.

Fitted on 27,000 positions of TCEC games (tcec_positions.txt.xz, seed 1),
each searched by one worker for 20,000 nodes. Log loss on 3,000 held-out positions:
frequencies alone 0.9759, score, not material 0.7622, score and material 0.7257.
"""

MATERIAL_KNOTS = (16, 26, 36, 50, 64, 78)
"""pawn units of both sides together"""
DRAW_MARGIN_CP = (267.2, 165.1, 162.2, 150.1, 148.0, 174.6)
"""a: the score at which half of the games are won"""
SPREAD_CP = (83.9, 63.1, 65.4, 78.3, 102.1, 128.8)
"""b: the scale of the logistic curves"""
