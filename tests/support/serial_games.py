"""Perft and a serial alpha-beta search of any game in the form of docs/examples, without anything of the searcher."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numba
import numpy as np
from compiled_game import ExampleGame

TABLE_SLOTS = 1 << 20
INFINITE = 20_000
"""Above every score."""
LOWER, UPPER = 1, 2
"""Bounds; an exact score is both."""


class Serial(NamedTuple):
    """What compiled code says of a position."""

    perft: Callable[[np.void, int], int]
    """(position, depth) -> lines of that length; a line ends with its game"""
    search: Callable[..., tuple[int, int, int]]
    """(position, one depth after another) -> score, best move, nodes"""


def serial(game: ExampleGame) -> Serial:
    """Return perft and search for a game."""
    dtype, most_moves = game.module.POSITION, game.module.MOST_MOVES
    moves, make, ended = game.module.moves, game.module.make, game.module.ended
    result, evaluate, key = game.module.result, game.module.evaluate, game.module.key

    @numba.njit(numba.int64(numba.typeof(np.zeros(1, dtype)), numba.uint16[:, ::1], numba.int64))
    def count_lines(line, found, depth):
        if depth == 0:
            return 1
        here, total = len(line) - 1 - depth, 0
        if ended(line[here]):
            return 0
        for i in range(moves(line[here], found[here])):
            line[here + 1] = line[here]
            make(line[here + 1], found[here, i])
            total += count_lines(line, found, depth - 1)
        return total

    @numba.njit(
        numba.int64(
            numba.typeof(np.zeros(1, dtype)),
            numba.uint16[:, ::1],
            numba.uint64[:, ::1],
            numba.int64[::1],
            *[numba.int64] * 4,
        )
    )
    def negamax(line, found, table, nodes, ply, depth, alpha, beta):
        nodes[0] += 1
        here = line[ply]
        if ended(here):
            return result(here)
        if depth == 0:
            return evaluate(here)
        hashed = key(here)
        slot, known = np.int64(hashed & np.uint64(TABLE_SLOTS - 1)), 65535
        if table[slot, 0] == hashed:
            entry = np.int64(table[slot, 1])  # move, depth, bound, score
            known, bound, score = entry & 65535, entry >> 24 & 255, (entry >> 32) - INFINITE
            enough = (entry >> 16 & 255) == depth and ply > 0
            if enough and ((bound & LOWER and score >= beta) or (bound & UPPER and score <= alpha) or bound == 3):
                return score
        number = moves(here, found[ply])
        for i in range(1, number):  # the move of the table goes first
            if found[ply, i] == known:
                found[ply, 1 : i + 1] = found[ply, :i].copy()
                found[ply, 0] = known
        best, best_move, low = -INFINITE, 65535, alpha
        for i in range(number):
            line[ply + 1] = line[ply]
            make(line[ply + 1], found[ply, i])
            if i and beta > low + 1:
                score = -negamax(line, found, table, nodes, ply + 1, depth - 1, -low - 1, -low)
                if low < score < beta:
                    score = -negamax(line, found, table, nodes, ply + 1, depth - 1, -beta, -low)
            else:
                score = -negamax(line, found, table, nodes, ply + 1, depth - 1, -beta, -low)
            if score > best:
                best, best_move = score, np.int64(found[ply, i])
                if ply == 0:
                    nodes[1] = best_move
            low = max(low, best)
            if low >= beta:
                break
        bound = (LOWER if best > alpha else 0) | (UPPER if best < beta else 0)
        table[slot, 0] = hashed
        table[slot, 1] = np.uint64(best + INFINITE << 32 | bound << 24 | depth << 16 | best_move)
        return best

    def perft(pos: np.void, depth: int) -> int:
        line = np.zeros(depth + 2, dtype)
        line[1] = pos
        return int(count_lines(line, np.zeros((depth + 2, most_moves), np.uint16), depth))

    def search(pos: np.void, *depths: int) -> tuple[int, int, int]:
        line, nodes = np.zeros(max(depths) + 2, dtype), np.zeros(2, np.int64)
        line[0] = pos
        found, table = np.zeros((len(line), most_moves), np.uint16), np.zeros((TABLE_SLOTS, 2), np.uint64)
        score = 0
        for depth in depths:
            score = int(negamax(line, found, table, nodes, 0, depth, -INFINITE, INFINITE))
        return score, int(nodes[1]), int(nodes[0])

    return Serial(perft, search)
