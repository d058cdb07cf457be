"""A game's file with its kernels compiled by numba as they come, without the searcher."""

from __future__ import annotations

import importlib.util
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
