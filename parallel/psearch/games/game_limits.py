"""What a user's game may be, and how it can be wrong: plain numbers and words."""

from __future__ import annotations

import numpy as np

POSITION_BYTES = 128
"""of a position, at most"""
MOST_MOVES = 256
"""of a position, at most"""
LARGEST_MOVE = 65_534
MOST_SCORE = 10_000
"""of an ended game or a guess, at most"""

RULES = {
    "start": ("pos",),
    "moves": ("pos", "found"),
    "make": ("pos", "move"),
    "ended": ("pos",),
    "result": ("pos",),
    "evaluate": ("pos",),
    "key": ("pos",),
}
"""Functions that a file must have, compiled, and what they are called with."""
WORDS = {
    "move_text": ("pos", "move"),
    "read_position": ("pos", "text"),
    "board_text": ("pos",),
}
"""Functions that stay Python; all but the first may be left out."""

TOO_MANY_MOVES, NO_MOVES, LARGE_MOVE, LARGE_RESULT, LARGE_EVALUATION = range(1, 6)
MISTAKES = {
    TOO_MANY_MOVES: ("moves", f"it has found {{}} moves, of 1 to MOST_MOVES = {{most}} (the most is {MOST_MOVES})"),
    NO_MOVES: ("moves", "it has found no move in a position of which ended() says that the game goes on"),
    LARGE_MOVE: ("moves", f"it has found the move {{}}: moves are numbers from 0 to {LARGEST_MOVE}"),
    LARGE_RESULT: ("result", f"it returned {{}}: scores are from -{MOST_SCORE} to {MOST_SCORE}"),
    LARGE_EVALUATION: ("evaluate", f"it returned {{}}: guesses are from -{MOST_SCORE - 1} to {MOST_SCORE - 1}"),
}
"""What a search can notice: the function, and what is said of it; `{}` stands for the number in question."""

level_dtype = np.dtype(
    [
        ("position", "u1", (POSITION_BYTES,)),
        ("found", "u2", (MOST_MOVES,)),
        ("count", "i8"),
        ("cursor", "i8"),  # next move; -1: the moves are not there yet
    ]
)
"""A ply of perft."""
