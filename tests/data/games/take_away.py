"""Take 1, 2, 3 or 5 from a heap; who takes the last one wins. A heap comes again at other depths."""

import numpy as np

NAME = "take away"
POSITION = np.dtype([("heap", "i4")])
MOST_MOVES = 4
TAKEN = (1, 2, 3, 5)


def start(pos):
    pos.heap = 60


def moves(pos, found):
    count = 0
    for taken in TAKEN:
        if taken <= pos.heap:
            found[count] = taken
            count += 1
    return count


def make(pos, move):
    pos.heap -= move


def ended(pos):
    return pos.heap == 0


def result(pos):
    return -1000


def evaluate(pos):
    return pos.heap * 37 % 41 - 20


def key(pos):
    return pos.heap


def move_text(pos, move):
    return f"{move}."
