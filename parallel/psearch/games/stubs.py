"""What stands in for the hooks of `rules.py`: patterns, which `plain_functions.py` copies for the game of a file.

A copy has globals of its own: `user_NAME`, the functions of the file as kernels; `position_at`, a view of the game's
record; `count`, its `MOST_MOVES`. Each calls the user's function with the record in place of its address.
"""

# mypy: ignore-errors
# ruff: noqa: F821

import numpy as np


def start(position):
    user_start(position_at(position))


def moves(position, found):
    return np.int64(user_moves(position_at(position), found_at(found).moves))


def most_moves():
    return np.int64(count)


def make(position, move):
    user_make(position_at(position), move)


def ended(position):
    return user_ended(position_at(position)) != 0


def result(position):
    return np.int64(user_result(position_at(position)))


def evaluate(position):
    return np.int64(user_evaluate(position_at(position)))


def key(position):
    return np.uint64(user_key(position_at(position)))
