"""Tic-tac-toe for `psearch game`: three in a row wins. A position is the squares played so far, `1` to `9` by rows."""

import numpy as np

NAME = "tic-tac-toe"
POSITION = np.dtype([("own", "u8"), ("other", "u8")])  # a bit a square: of the side to move, of the other one
MOST_MOVES = 9

LINES = np.array([0o007, 0o070, 0o700, 0o111, 0o222, 0o444, 0o421, 0o124], np.uint64)
BEST_FIRST = np.array([4, 0, 2, 6, 8, 1, 3, 5, 7])  # the middle, the corners, the rest
FULL = np.uint64(0o777)
ONE = np.uint64(1)


def has_line(squares):
    for line in LINES:
        if squares & line == line:
            return True
    return False


def start(pos):
    pos.own = 0
    pos.other = 0


def moves(pos, found):
    count = 0
    for square in BEST_FIRST:
        if ((pos.own | pos.other) >> np.uint64(square)) & ONE == 0:
            found[count] = square
            count += 1
    return count


def make(pos, move):
    own = pos.own | (ONE << np.uint64(move))
    pos.own = pos.other  # seen from the other side from now on
    pos.other = own


def ended(pos):
    return has_line(pos.other) or (pos.own | pos.other) == FULL


def result(pos):
    return -1 if has_line(pos.other) else 0  # only who has just moved can have won


def evaluate(pos):
    return 0


def key(pos):
    return pos.own << np.uint64(9) | pos.other


def move_text(pos, move):
    return str(move + 1)
