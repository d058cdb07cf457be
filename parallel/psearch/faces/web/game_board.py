"""The board of a page: the present game, former ones for *Undo*, and the games of the latest PGN."""

from __future__ import annotations

import asyncio
import time
from typing import Any, NamedTuple

from psearch.faces.web.connection import Connection
from psearch.faces.web.game_tree import GameTree, UnreadGame
from psearch.results import PsearchError

_MOST_FORMER = 4
"""Most steps of *Undo*, each of which may be a game of 4,000 moves."""
_REST = 20
"""Pause after writing the PGN, as a multiple of the time it took, since long games take long."""


class Shown(NamedTuple):
    """Holds the game on the board and what belongs to it."""

    tree: GameTree
    games: list[UnreadGame] = []  # noqa: RUF012  # never changed
    """Games of the latest PGN."""
    number: int = 0
    """Number of the game that is shown."""
    opened: dict[int, GameTree] = {}  # noqa: RUF012
    """Games opened before, as the user left them, by number."""
    review: dict[str, Any] = {}  # noqa: RUF012
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
        self._writing: asyncio.Task[None] | None = None
        """Task that will send the PGN."""
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

    def replace(self, tree: GameTree) -> None:
        """Put another game on the board, and keep the former one for *Undo*."""
        self.keep()
        self.shown = self.shown._replace(tree=tree)

    def send_position(self) -> None:
        """Send the position on the board to the page."""
        self._page.send("board.position", self.tree.position())

    def send_game(self) -> None:
        """Send tree, position and PGN to the page, which keeps the PGN in case the server ends."""
        self._page.send("board.tree", {**self.tree.tree(), "undo": bool(self._former), "redo": bool(self._later)})
        self.send_position()
        if self._writing is None or self._writing.done():
            self._writing = self._page.begin("board", self._send_pgn())

    def send_games(self, opened: bool) -> None:
        """Send the list of games. opened: whether one was opened just now."""
        titles = [f"{number}. {game.title}" for number, game in enumerate(self.shown.games, 1)]
        self._page.send("board.games", {"titles": titles, "here": self.shown.number, "opened": opened})

    async def _send_pgn(self) -> None:
        await asyncio.sleep(self._written_at - time.monotonic())
        began = time.monotonic()
        pgn = self.tree.export()["pgn"]
        self._written_at = began + _REST * (time.monotonic() - began)
        self._page.send("board.kept", {"pgn": pgn})

    def _with(self, tree: GameTree) -> Shown:
        """Return the board with its tree replaced."""
        opened = {number: tree if other is self.tree else other for number, other in self.shown.opened.items()}
        return self.shown._replace(tree=tree, opened=opened, review=self.review)

    def step(self, back: bool) -> Shown:
        """Undo or redo: return the other board, and keep the present one. Raises PsearchError if there is none."""
        source, target = (self._former, self._later) if back else (self._later, self._former)
        if not source:
            raise PsearchError(f"there is nothing to {'undo' if back else 'redo'}")
        other = source.pop()
        target.append(self._with(self.tree))
        return other
