"""A user's own game, searched in parallel: `psearch.games.search("my_game.py", threads=2)`.

A game is two players, zero sum, full information, at most 256 moves a position; its file is plain functions that numba
compiles (docs/guides/own-game.md). Imports everything but the faces and the laboratory.

Begin with `searching`; `own_game` is a file, its rules and positions as Python has them (`game_file` reads it,
`game_limits` says what it may be). In the search `node_kernels` stand in for those of `psearch_core.game`, and call the
hooks of `rules`; `user_game` tells the toolchain so. In the compiler's process `plain_functions` makes kernels of the
file's functions, after the patterns of `stubs`, and `trial` plays some games with them. `rule_entries` is what Python
calls of the rules, in a process apart (`rules_process`). `game_report` puts results into words.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from psearch.games.own_game import Game, GamePosition
    from psearch.games.searching import GameResult, search

__all__ = ["Game", "GamePosition", "GameResult", "search"]

_LAZY = {
    **dict.fromkeys(("Game", "GamePosition"), "psearch.games.own_game"),
    **dict.fromkeys(("GameResult", "search"), "psearch.games.searching"),
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    value = getattr(importlib.import_module(_LAZY[name]), name)
    globals()[name] = value
    return value
