"""The games of docs/examples without the searcher: compiled by numba as they come, and twins in slow, plain Python."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import FunctionType, ModuleType
from typing import NamedTuple

import numba
import numpy as np

PLAIN = ("move_text", "board_text", "read_position")
"""The functions of a game that stay Python."""


class ExampleGame(NamedTuple):
    """A game that Python can play; its module has the functions that compiled code calls."""

    module: ModuleType

    def position(self) -> np.void:
        """Return a position at the start of the game."""
        pos = np.zeros(1, self.module.POSITION)[0]
        self.module.start(pos)
        return pos

    def legal(self, pos: np.void) -> list[int]:
        """Return the legal moves, best guess first; none when the game is over."""
        if self.module.ended(pos):
            return []
        found = np.zeros(self.module.MOST_MOVES, np.uint16)
        return [int(move) for move in found[: self.module.moves(pos, found)]]

    def after(self, pos: np.void, move: int) -> np.void:
        """Return the position after a move."""
        after = pos.copy()
        self.module.make(after, np.uint16(move))
        return after

    def read(self, text: str) -> np.void:
        """Return the position that a text stands for: by the game's own reader, else by the texts of its moves."""
        pos = self.position()
        if hasattr(self.module, "read_position"):
            self.module.read_position(pos, text)
            return pos
        while text:
            texts = {self.module.move_text(pos, move): move for move in self.legal(pos)}
            word = next((word for word in texts if text.startswith(word)), None)
            if word is None:
                raise ValueError(f"no legal move begins {text}")
            pos, text = self.after(pos, texts[word]), text[len(word) :]
        return pos


def load_plain(path: Path) -> ExampleGame:
    """Return the game in a file as Python runs it."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return ExampleGame(module)


def load_game(path: Path) -> ExampleGame:
    """Return the game in a file, with every function that is not plain Python compiled at its first call."""
    game = load_plain(path)
    for name, function in list(vars(game.module).items()):
        if isinstance(function, FunctionType) and name not in PLAIN:
            setattr(game.module, name, numba.njit(error_model="numpy")(function))
    return game


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


Square = tuple[int, int]
ALL_LINES = [(right, down) for right in (-1, 0, 1) for down in (-1, 0, 1) if (right, down) != (0, 0)]


class NaiveConnectFour:
    """A game of Connect Four: columns of stones, each the number of the player, 0 or 1."""

    def __init__(self) -> None:
        self.columns: list[list[int]] = [[] for _ in range(7)]
        self.turn = 0

    def _at(self, column: int, row: int) -> int | None:
        inside = 0 <= column < 7 and 0 <= row < len(self.columns[column])
        return self.columns[column][row] if inside else None

    def winner(self) -> int | None:
        """Return who has four in a line."""
        for column in range(7):
            for row in range(6):
                for right, up in ((1, 0), (0, 1), (1, 1), (1, -1)):
                    line = {self._at(column + right * i, row + up * i) for i in range(4)}
                    if len(line) == 1 and None not in line:
                        return line.pop()
        return None

    def moves(self) -> list[str]:
        """Return the columns that are not full, from 1; none when the game is over."""
        if self.winner() is not None:
            return []
        return [str(column + 1) for column in range(7) if len(self.columns[column]) < 6]

    def play(self, move: str) -> None:
        """Drop a stone."""
        self.columns[int(move) - 1].append(self.turn)
        self.turn = 1 - self.turn

    def result(self) -> int:
        """Return the score for the side to move: one, and the stones left to the winner, in hundredths."""
        winner = self.winner()
        if winner is None:
            return 0
        score = 22 - sum(column.count(winner) for column in self.columns)
        return 100 * (score if winner == self.turn else -score)

    def state(self) -> object:
        """Return what tells positions apart."""
        return tuple(map(tuple, self.columns)), self.turn

    def picture(self) -> str:
        """Return the board as people see it."""
        rows = []
        for row in (5, 4, 3, 2, 1, 0):
            rows.append(" ".join({0: "X", 1: "O", None: "."}[self._at(column, row)] for column in range(7)))
        return "\n".join(rows)


class NaiveOthello:
    """A game of Othello: X and O by square, each (column, row) from the upper left corner; X begins."""

    def __init__(self, discs: dict[Square, str] | None = None, turn: str = "X") -> None:
        self.discs = discs or {(3, 3): "O", (4, 4): "O", (4, 3): "X", (3, 4): "X"}
        self.turn = turn

    def _turned(self, square: Square, mine: str) -> list[Square]:
        if square in self.discs:
            return []
        turned: list[Square] = []
        for right, down in ALL_LINES:
            row: list[Square] = []
            at = (square[0] + right, square[1] + down)
            while self.discs.get(at, mine) != mine:
                row.append(at)
                at = (at[0] + right, at[1] + down)
            if at in self.discs:
                turned += row
        return turned

    def _legal(self, mine: str) -> list[str]:
        squares = [(column, row) for row in range(8) for column in range(8)]
        return ["abcdefgh"[at[0]] + str(at[1] + 1) for at in squares if self._turned(at, mine)]

    def other(self) -> str:
        """Return the side that is not to move."""
        return "O" if self.turn == "X" else "X"

    def moves(self) -> list[str]:
        """Return the squares, or the pass; none when the game is over."""
        legal = self._legal(self.turn)
        return legal or (["pa"] if self._legal(self.other()) else [])

    def play(self, move: str) -> None:
        """Put a disc, or pass."""
        if move != "pa":
            square = ("abcdefgh".index(move[0]), int(move[1]) - 1)
            for at in [*self._turned(square, self.turn), square]:
                self.discs[at] = self.turn
        self.turn = self.other()

    def result(self) -> int:
        """Return the difference of discs for the side to move, empty squares counted for the winner, in hundredths."""
        discs = list(self.discs.values())
        mine, his = discs.count(self.turn), discs.count(self.other())
        if mine == his:
            return 0
        return 100 * (64 - 2 * his) if mine > his else -100 * (64 - 2 * mine)

    def state(self) -> object:
        """Return what tells positions apart: the colours may be exchanged."""
        return frozenset((at, disc == self.turn) for at, disc in self.discs.items())

    def picture(self) -> str:
        """Return the board as people see it."""
        rows = [" ".join(self.discs.get((column, row), "-") for column in range(8)) for row in range(8)]
        return "\n".join([*rows, f"{self.turn} to move"])

    def copy(self) -> NaiveOthello:
        """Return the position once more."""
        return NaiveOthello(dict(self.discs), self.turn)


def naive_negamax(game: NaiveOthello, alpha: int = -6400, beta: int = 6400) -> int:
    """Return the exact score for the side to move."""
    moves = game.moves()
    if not moves:
        return game.result()
    best = -6400
    for move in moves:
        after = game.copy()
        after.play(move)
        best = max(best, -naive_negamax(after, -beta, -max(alpha, best)))
        if best >= beta:
            break
    return best
