"""An artificial game tree: twelve moves in each position, and values drawn from a seed, the same on every machine.

A position is named by its seed. The mover's estimate falls by `STEP` for each move that his guess ranks lower, and by
a random number of at most `NOISE` to either side. So the first move is usually best, as in a game with a good move
order; with `NOISE = 0` it always is. Searches of the tree depend on no evaluation and no rules of chess.
"""

import numpy as np

NAME = "artificial tree"
# `path` are the moves so far, mixed; `score` is that of the side to move.
POSITION = np.dtype([("path", "u8"), ("score", "i4"), ("ply", "i4")])
MOST_MOVES = 12
STEP = 8
NOISE = 40
LENGTH = 40  # plies of a game


def mixed(bits):
    """Return 64 bits that look random (splitmix64; Steele, Lea and Flood 2014)."""
    bits = bits + np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def start(pos):
    pos.path = 0
    pos.score = 0
    pos.ply = 0


def moves(pos, found):
    for rank in range(MOST_MOVES):
        found[rank] = rank  # a move is its rank: the best guess first
    return MOST_MOVES


def make(pos, move):
    pos.path = mixed(pos.path + np.uint64(move))
    noise = np.int64(pos.path >> np.uint64(32)) % (2 * NOISE + 1) - NOISE
    pos.score = move * STEP + noise - pos.score  # seen from the other side from now on
    pos.ply += 1


def ended(pos):
    return pos.ply == LENGTH


def result(pos):
    return pos.score


def evaluate(pos):
    return pos.score


def key(pos):
    return pos.path


def move_text(pos, move):
    return chr(ord("a") + int(move))


def read_position(pos, text):
    """Write the root of the tree of a seed, a whole number; without a text that of seed 0."""
    if not text.isascii() or not text.isdigit() or int(text) >= 2**32:
        raise ValueError("a seed is a whole number from 0 to 4294967295")
    pos.path = int(text) * 0x9E3779B97F4A7C15 % 2**64  # neighbouring seeds far from each other
    pos.score = 0
    pos.ply = 0
