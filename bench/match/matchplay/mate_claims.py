"""Announced mates that do not come, and won games that are let go."""

from __future__ import annotations

from dataclasses import dataclass

_THROWN_AWAY = ("repetition", "fifty moves", "stalemate")
WINNING_CP = 300


@dataclass
class MateClaims:
    """What one engine announced for itself in a game.

    "Mate in N" promises mate with its Nth move from then, against anything. The promise may be renewed by one that is
    as short or shorter before that move is due: whoever shuffles and goes on announcing is found out when the game is
    drawn. A longer announcement does not move that day.
    """

    moves: int = 0
    """made so far"""
    claimed: int = 0
    """N of the promise that stands; 0 is none"""
    due: int = 0
    """the number of the move that must mate"""
    where: str = ""
    """the position of the claim, FEN"""

    def move(self, fen: str, mate: int | None) -> str | None:
        """A move is made in `fen` with "mate in `mate`" announced (None: not announced); what it proves wrong."""
        self.moves += 1
        broken = None
        if self.claimed and self.moves > self.due:
            broken = f"announced mate in {self.claimed} in {self.where} and did not mate"
            self.claimed = 0
        if mate is not None and mate > 0 and (not self.claimed or mate <= self.claimed):
            self.claimed, self.due, self.where = mate, self.moves + mate - 1, fen
        return broken

    def end(self, reason: str) -> str | None:
        """The game ends by the rules without this engine's having mated; what that proves wrong."""
        return f"announced mate in {self.claimed} in {self.where}: {reason}" if self.claimed else None


def thrown_away(reason: str, last_score_cp: int | None) -> bool:
    """Whether an engine that thought itself well ahead at its last move let the game end in a draw it could avoid."""
    return reason in _THROWN_AWAY and last_score_cp is not None and last_score_cp >= WINNING_CP
