"""What a search needs to know of a position that is none of chess."""

from __future__ import annotations

from typing import Protocol

import chess
import numpy as np

from psearch_core.toolchain.kernel_sets import KernelSet


class Subject(Protocol):
    """A position of another game, which has a legal move: in place of a `chess.Board`, wherever one is searched.

    Its moves are the numbers that the search has for them (`psearch_core.game`), in reports, too; a score is in the
    game's own unit, which a report has in the place of centipawns.
    """

    @property
    def kernels(self) -> KernelSet:
        """Return the kernels that search it."""

    def write_root(self, record: np.ndarray) -> None:
        """Write it into a position's record, all zero, `key` included."""

    def root_moves(self) -> list[int]:
        """Return the legal moves, best guess first."""

    def static_score(self) -> int:
        """Return what it is worth without a search."""

    def text(self) -> str:
        """Return the position as a user writes it."""


def board_text(board: chess.Board | Subject) -> str:
    """Return what is searched as text: a FEN, or what a game has for it."""
    return board.fen() if isinstance(board, chess.Board) else board.text()
