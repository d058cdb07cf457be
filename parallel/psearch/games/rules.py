"""The rules of a user's game, for calls from the search and from Python; a position is an address.

The search calls the hooks. `game_compiler` replaces them by the functions of a file, after `Patterns`; without a file
nothing here is called. The first `POSITION_BYTES` of a position's record belong to the game.
"""
# mypy: disable-error-code="name-defined, misc"

from typing import cast

import numba
import numpy as np
from numba.core import types

from psearch.games.game_file import MOST_MOVES, POSITION_BYTES, RULES, level_dtype
from psearch_core.arithmetic import splitmix64
from psearch_core.constants import U0
from psearch_core.toolchain.intrinsics import address, copy_bytes, field_address, view
from psearch_core.toolchain.jit import entry, hook
from psearch_core.views import boolean, i64, u64, void

Found = cast(types.Record, numba.from_dtype(np.dtype([("moves", "u2", (MOST_MOVES,))])))
"""Record of a list of moves, as a game writes it."""
found_at = view(Found)
Level = cast(types.Record, numba.from_dtype(level_dtype))
_LEVEL_SIZE = level_dtype.itemsize
_level_at = view(Level)
_found_of = field_address(Level, "found")
_START, _MOVES, _MAKE, _ENDED, _RESULT, _EVALUATE, _KEY = range(len(RULES))


@hook(void(i64))
def start(position):
    """Write the starting position into bytes that are zero."""


@hook(i64(i64, i64))
def moves(position, found):
    """Write the legal moves, best guess first, as `uint16` at the address `found`, and return their number."""
    return np.int64(0)


@hook(i64())
def most_moves():
    """Return the largest number of moves in a position."""
    return np.int64(MOST_MOVES)


@hook(void(i64, i64))
def make(position, move):
    """Play a move in place; the position is seen from the other side afterwards."""


@hook(boolean(i64))
def ended(position):
    """Tell whether the game is over."""
    return True


@hook(i64(i64))
def result(position):
    """Return the score of an ended game, for the side to move."""
    return np.int64(0)


@hook(i64(i64))
def evaluate(position):
    """Return a guess at the score, for the side to move."""
    return np.int64(0)


@hook(u64(i64))
def key(position):
    """Return a hash of the position, the side to move included."""
    return U0


class Patterns:
    """Patterns of the functions that replace the hooks. A copy of each gets its own globals: `user_NAME`, the file's
    functions as kernels; `position_at`, a view of the game's record; `count`, its `MOST_MOVES`."""

    # ruff: noqa: F821
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


@entry(i64(i64, i64, i64))
def game_rule(rule, position, argument):
    """Call a rule by its index in `RULES`. argument: address for the moves, or the move. The key is mixed, as in the
    search, since a game's own key may be any number that distinguishes positions."""
    if rule == _START:
        start(position)
    elif rule == _MOVES:
        return moves(position, argument)
    elif rule == _MAKE:
        make(position, argument)
    elif rule == _ENDED:
        return np.int64(ended(position))
    elif rule == _RESULT:
        return result(position)
    elif rule == _EVALUATE:
        return evaluate(position)
    elif rule == _KEY:
        return np.int64(splitmix64(key(position)))
    return np.int64(0)


@entry(i64(i64, i64))
def game_perft(levels, depth):
    """Return the number of ways to play `depth` moves; -1: a list of moves is wrong. levels: address of `depth + 1`
    records of `level_dtype`, with the position in the first."""
    total = np.int64(0)
    ply = 0
    _level_at(levels).cursor = -1
    while ply >= 0:
        level = _level_at(levels + ply * _LEVEL_SIZE)
        if ply == depth:
            total += 1
            ply -= 1
            continue
        if level.cursor < 0:
            level.cursor = 0
            level.count = 0 if ended(address(level)) else moves(address(level), _found_of(level))
            if level.count < 0 or level.count > most_moves():
                return np.int64(-1)
        if level.cursor == level.count:
            ply -= 1
            continue
        move = np.int64(found_at(_found_of(level)).moves[level.cursor])
        level.cursor += 1
        ply += 1
        below = _level_at(levels + ply * _LEVEL_SIZE)
        copy_bytes(address(below), address(level), POSITION_BYTES)
        make(address(below), move)
        below.cursor = -1
    return total
