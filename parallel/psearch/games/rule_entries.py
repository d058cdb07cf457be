"""The rules of a user's game as Python calls them; a position is the address of its bytes."""

from __future__ import annotations

from typing import cast

import numba
import numpy as np
from numba.core import types

from psearch.games.game_limits import POSITION_BYTES, level_dtype
from psearch.games.rules import ended, evaluate, found_at, key, make, most_moves, moves, result, start
from psearch_core.arithmetic import splitmix64
from psearch_core.toolchain.intrinsics import address, copy_bytes, field_address, view
from psearch_core.toolchain.jit import entry
from psearch_core.views import i64, void

Level = cast(types.Record, numba.from_dtype(level_dtype))
_LEVEL_SIZE = level_dtype.itemsize
_level_at = view(Level)
_found_of = field_address(Level, "found")


@entry(void(i64))
def game_start(position):
    start(position)


@entry(i64(i64, i64))
def game_moves(position, found):
    return moves(position, found)


@entry(void(i64, i64))
def game_make(position, move):
    make(position, move)


@entry(i64(i64))
def game_ended(position):
    return 1 if ended(position) else 0


@entry(i64(i64))
def game_result(position):
    return result(position)


@entry(i64(i64))
def game_evaluate(position):
    return evaluate(position)


@entry(i64(i64))
def game_key(position):
    """Return the key as the search has it: mixed, for a game's own may be any number that tells positions apart."""
    return np.int64(splitmix64(key(position)))


@entry(i64(i64, i64))
def game_perft(levels, depth):
    """Return the number of ways to play `depth` moves, -1 where a list of moves is wrong. levels: address of
    `depth + 1` records of `level_dtype`, the position in the first."""
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
