"""Parameters of the win, draw and loss model (`wdl.py`). Written by bench/tuning/fit_wdl.py: change that, not this.

Fitted on 27,000 positions (tcec_positions.txt.xz, seed 1),
each searched by one worker for 20,000 nodes. Log loss on 3,000 held-out positions:
frequencies alone 0.9759, score, not material 0.7176, score and material 0.6673.
"""

MATERIAL_KNOTS = (16, 26, 36, 50, 64, 78)
"""Material of both sides at each knot, in pawn units."""
DRAW_MARGIN_CP = (221.5, 139.2, 132.8, 108.5, 91.4, 93.5)
"""Parameter a at each knot: the score, in centipawns, at which half of the games are won."""
SPREAD_CP = (59.9, 46.3, 49.0, 49.1, 57.8, 67.5)
"""Parameter b at each knot: the scale of the logistic curves, in centipawns."""
