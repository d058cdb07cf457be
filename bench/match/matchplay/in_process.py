"""A game between two searches in this process: no clock, no protocol, the same moves on every machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import chess

from .game import Adjudication, Rules, ending
from .openings import Opening

RULES = Rules(resign=(600, 4), draw=(10, 8, 40))
"""Both have thought for four moves that one is six pawns ahead, or for eight, from move 40 on, that neither is by more
than 10 centipawns."""
MOST_PLIES = 600


class Player(Protocol):
    """One side, and what it remembers of its game."""

    def new_game(self) -> None:
        """Forget."""

    def move(self, board: chess.Board) -> tuple[chess.Move, int]:
        """The move, and its score in centipawns; a mate is many."""


@dataclass(frozen=True)
class Finished:
    """How a game ended."""

    winner: int | None
    """0 the first player, 1 the second, None drawn"""
    reason: str
    plies: int
    """without the opening's"""

    @property
    def half_points(self) -> int:
        """Of the first player."""
        return 1 if self.winner is None else 2 * (1 - self.winner)


def play(players: Sequence[Player], opening: Opening, white: int) -> Finished:
    """One game. white: which of the two players, 0 or 1, has the white pieces."""
    board = opening.board()
    adjudication = Adjudication(RULES)
    for player in players:
        player.new_game()
    for plies in range(1, MOST_PLIES + 1):
        number = white if board.turn == chess.WHITE else 1 - white
        move, score = players[number].move(board)
        board.push(move)
        over = ending(board)
        if over is not None:
            return Finished(number if over[0] else None, over[1], plies)
        agreed = adjudication.move(number, score, board.fullmove_number)
        if agreed is not None:
            return Finished(*agreed, plies)
    return Finished(None, f"{MOST_PLIES} plies", MOST_PLIES)
