"""Records of a game and of a position to learn from, and the compiled functions that work on them.

Needs neither numba nor compiled code: `kernels.py` is imported by the compiler only.
"""

from __future__ import annotations

import numpy as np

from psearch_core.records import frame_dtype, position_dtype
from psearch_core.toolchain.groups import Group

GAMES = Group("training_games", "netdata.kernels")
play_game = GAMES.entry("play_game")
decode_game = GAMES.entry("decode_game")
rank_moves = GAMES.entry("rank_moves")
follow_game = GAMES.entry("follow_game")

MOST_PLIES = 512
"""Room for a game with its opening."""
WHITE_WON, DRAWN, BLACK_WON = 2, 1, 0
BY_RULE, ADJUDICATED, TOO_LONG, UNFIT = 0, 1, 2, 3

game_dtype = np.dtype(
    [
        ("root", position_dtype),  # before the first ply
        ("opening", "i8"),  # plies before the first searched one; they have no score
        ("count", "i8"),  # plies, the opening's included
        ("result", "i8"),  # WHITE_WON, DRAWN or BLACK_WON
        ("ending", "i8"),  # BY_RULE, ADJUDICATED, TOO_LONG; UNFIT: not played, one side is too far ahead
        ("nodes", "i8"),  # searched in all
        ("soft_nodes", "i8"),  # an iteration during which a search has passed them is its last
        ("hard_nodes", "i8"),
        ("most_plies", "i8"),
        ("fit_score", "i8"),  # centipawns; a first score beyond it makes the game UNFIT
        ("won_score", "i8"),  # centipawns; after won_plies scores in a row beyond it for one side the game is won
        ("won_plies", "i8"),
        ("dead_score", "i8"),  # after dead_plies scores in a row within it, dead_from plies from the start, it is drawn
        ("dead_plies", "i8"),
        ("dead_from", "i8"),
        ("codes", "u2", (MOST_PLIES,)),  # moves, as psearch_core/chess/board/attacks.py codes them
        (
            "ranks",
            "u1",
            (MOST_PLIES,),
        ),  # their places among the legal moves sorted by code, of which there are 244 at most
        ("scores", "i2", (MOST_PLIES,)),  # White's view, centipawns; 0 in the opening
    ],
    align=True,
)
sample_dtype = np.dtype(
    [
        # from the mover's side of the board: for Black ranks are mirrored and colours exchanged
        ("occupied", "u8"),
        (
            "pieces",
            "u1",
            (16,),
        ),  # a nibble for each bit of `occupied`, a1 first, low nibble first: P N B R Q K 0 to 5, + 8 his
        ("score", "i2"),  # of the search, the mover's view, centipawns
        ("result", "u1"),  # 2 the mover won, 1 drawn, 0 lost
        ("pad", "u1", (5,)),
    ],
    align=True,
)
"""A position to learn from, in 32 bytes."""
decoder_dtype = np.dtype(
    [
        ("frame", frame_dtype),
        ("before", position_dtype),
        ("position", position_dtype),
        ("skipped", "i8"),  # searched plies at the beginning that are left out
        ("most_score", "i8"),  # positions with a score beyond it are left out, centipawns
        ("noisy", "i8"),  # 1: positions in check, and those whose move takes or promotes, are kept
    ],
    align=True,
)
