"""A user's own game, searched in parallel: `psearch.games.search("my_game.py", threads=2)`.

A game has two players, zero sum, full information and at most 256 moves in a position. Its file has plain functions
that numba compiles (docs/guides/own-game.md). The package imports everything but the rooms faces and lab.

Begin with `searching`. `own_game` has the game of a file, its rules and its positions for Python; `game_file` checks a
file, `user_game` tells the toolchain how to make kernels of it. In a search `node_kernels` replace those of
`psearch_core.game` and call the hooks of `rules`. In the compiler's process `game_compiler` makes kernels of the file's
functions and plays test games with them. Python calls the rules in a separate process (`rules_process`).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from psearch.games.own_game import Game, GamePosition
    from psearch.games.searching import GameResult, search

__all__ = ["Game", "GamePosition", "GameResult", "search"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    home = "searching" if name in ("GameResult", "search") else "own_game"
    return getattr(importlib.import_module(f"psearch.games.{home}"), name)
