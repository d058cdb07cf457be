"""The games of docs/examples in slow, plain Python: their files as they are, and twins on lists of squares."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any


def plain_game(path: Path) -> Any:
    """Return the module of a game's file as Python runs it."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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
        return self._legal(self.turn) or (["pa"] if self._legal(self.other()) else [])

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
