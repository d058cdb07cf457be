"""Positions of a game for the studies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from psearch.core.toolchain.kernel_sets import KernelSet
from psearch.games.game import Game, GamePosition
from psearch.games.searching import options_for
from psearch.results import PsearchError
from psearch.text.values import shown

_BASE_POLICY = "serial"
"""of the search by one worker, with which others are compared"""


class GameSuitePosition(NamedTuple):
    """What `SuitePosition` is for chess."""

    name: str
    board: GamePosition


def game_suite(game: Game, texts: Sequence[str]) -> list[GameSuitePosition]:
    """Return the positions of these texts, `""` for the beginning. Raises PsearchError, also where a game is over."""
    suite = [GameSuitePosition(text or game.name, game.read(text)) for text in texts]
    for text, position in zip(texts, suite, strict=True):
        if position.board.is_over:
            raise PsearchError(f"position {shown(text)}: the game is over")
    return suite


def game_kernels(suite: Sequence[GameSuitePosition], policies: Sequence[str]) -> dict[str, KernelSet]:
    """Return the kernels of a game's searches by policy. Raises PsearchError for a policy that is none."""
    game = suite[0].board.game
    return {policy: options_for(game, policy).kernels for policy in (_BASE_POLICY, *policies)}
