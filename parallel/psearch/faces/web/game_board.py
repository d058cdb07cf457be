"""The board of a page: the present game, and former ones for *Undo*."""

from __future__ import annotations

import asyncio
import time
from typing import Any, NamedTuple

from psearch.faces.web.connection import Connection
from psearch.faces.web.game_tree import GameTree
from psearch.results import PsearchError

_MOST_FORMER = 4
"""Most steps of *Undo*, each of which may be a game of 4,000 moves."""
_REST = 20
"""Pause after writing the PGN, as a multiple of the time it took, since long games take long."""


class Shown(NamedTuple):
    """Holds the game on the board and what belongs to it."""

    tree: GameTree
    name: str = ""
    """Name by which the page knows the game, such as its place in a list."""
    review: dict[str, Any] = {}  # noqa: RUF012  # never changed
    """State of the analysis of the game, as shown on the page."""


class GameBoard:
    """Keeps the game on the board of a page, and sends it to the page."""

    def __init__(self, page: Connection) -> None:
        self._page = page
        self.shown = Shown(GameTree())
        self.review: dict[str, Any] = {}
        """Present state of the analysis of the game, as shown on the page."""
        self._former: list[Shown] = []
        """Former boards for *Undo*, latest last."""
        self._later: list[Shown] = []
        """Undone boards for *Redo*."""
        self._writing: asyncio.TimerHandle | None = None
        """Timer that will send the PGN."""
        self._written_at = 0.0
        """Earliest time to write the PGN again."""

    @property
    def tree(self) -> GameTree:
        """Return the game on the board."""
        return self.shown.tree

    def keep(self, tree: GameTree | None = None) -> None:
        """Keep the board for *Undo*, before it is replaced. tree: a copy, if the tree itself will be changed."""
        self._former.append(self._with(tree or self.tree))
        del self._former[:-_MOST_FORMER]
        self._later.clear()

    def put(self, other: Shown) -> None:
        """Put another game on the board; the page gets the PGN of the former one before."""
        if self._writing is not None:
            self._writing.cancel()
            self._send_pgn()
        self.shown = other

    def send_position(self) -> None:
        """Send the position on the board to the page."""
        self._page.send("board.position", self.tree.position())

    def send_game(self) -> None:
        """Send tree, position and PGN to the page, which keeps the PGN in case the server ends."""
        steps = {"undo": bool(self._former), "redo": bool(self._later)}
        self._page.send("board.tree", {**self.tree.tree(), "name": self.shown.name, **steps})
        self.send_position()
        if self.review.get("moves"):
            self._page.show("review.state", self.review)  # marks and better moves are not part of the tree
        if self._writing is None:
            wait_s = max(0.0, self._written_at - time.monotonic())
            self._writing = asyncio.get_running_loop().call_later(wait_s, self._send_pgn)

    def _send_pgn(self) -> None:
        self._writing, began = None, time.monotonic()
        pgn = self.tree.export()["pgn"]
        self._written_at = began + _REST * (time.monotonic() - began)
        self._page.send("board.kept", {"pgn": pgn, "name": self.shown.name})

    def _with(self, tree: GameTree) -> Shown:
        """Return the board with its tree replaced."""
        return self.shown._replace(tree=tree, review=self.review)

    def step(self, back: bool) -> Shown:
        """Undo or redo: return the other board, and keep the present one. Raises PsearchError if there is none."""
        source, target = (self._former, self._later) if back else (self._later, self._former)
        if not source:
            raise PsearchError(f"there is nothing to {'undo' if back else 'redo'}")
        other = source.pop()
        target.append(self._with(self.tree))
        return other
