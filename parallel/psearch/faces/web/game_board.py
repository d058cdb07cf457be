"""The board of a page: the game that is on it, what was there before (*Undo*), and the games of the latest PGN."""

from __future__ import annotations

import asyncio
import time
from typing import Any, NamedTuple

from psearch.faces.web.connection import Connection
from psearch.faces.web.game_tree import GameTree, UnreadGame
from psearch.results import PsearchError

_MOST_FORMER = 4
"""Steps of *Undo*: each may be a game of 4,000 moves."""
_REST = 20
"""The PGN of a long game takes long to write: at most one part in so many of the time."""


class Shown(NamedTuple):
    """Holds what is on the board, and what goes with it."""

    tree: GameTree
    games: list[UnreadGame] = []  # noqa: RUF012  # never changed
    """of the PGN that was given last"""
    number: int = 0
    """of the one that is shown"""
    opened: dict[int, GameTree] = {}  # noqa: RUF012
    """those that were looked at, as they were left"""
    review: dict[str, Any] = {}  # noqa: RUF012
    """what the page shows of the analysis of the game"""


class GameBoard:
    """Keeps what is on the board of a page, and tells it."""

    def __init__(self, page: Connection) -> None:
        self._page = page
        self.shown = Shown(GameTree())
        self.review: dict[str, Any] = {}
        """what the page shows of the analysis of the game, as it is now"""
        self._former: list[Shown] = []
        """what was on the board before, for *Undo*; the latest last"""
        self._later: list[Shown] = []
        """what was undone"""
        self._writing: asyncio.Task[None] | None = None
        """waits to tell the PGN"""
        self._written_at = 0.0
        """before this moment the PGN is not written again"""

    @property
    def tree(self) -> GameTree:
        """Return the game on the board."""
        return self.shown.tree

    def keep(self, tree: GameTree | None = None) -> None:
        """Keep what is on the board for *Undo*, before something takes its place. tree: a copy, if the tree itself is
        going to be changed."""
        self._former.append(self._with(tree or self.tree))
        del self._former[:-_MOST_FORMER]
        self._later.clear()

    def replace(self, tree: GameTree) -> None:
        """Put another game on the board, among the same games of a PGN, and keep the one that is there."""
        self.keep()
        self.shown = self.shown._replace(tree=tree)

    def tell_position(self) -> None:
        """Tell the page what stands on the board."""
        self._page.send("board.position", self.tree.position())

    def tell_game(self) -> None:
        """Tell the page the tree, the position, and the PGN: it has the game also when the server has ended."""
        self._page.send("board.tree", {**self.tree.tree(), "undo": bool(self._former), "redo": bool(self._later)})
        self.tell_position()
        if self._writing is None or self._writing.done():
            self._writing = self._page.begin("board", self._tell_pgn())

    def tell_games(self, opened: bool) -> None:
        """Tell what can be chosen from. opened: one was, just now."""
        titles = [f"{number}. {game.title}" for number, game in enumerate(self.shown.games, 1)]
        self._page.send("board.games", {"titles": titles, "here": self.shown.number, "opened": opened})

    async def _tell_pgn(self) -> None:
        await asyncio.sleep(self._written_at - time.monotonic())
        began = time.monotonic()
        pgn = self.tree.export()["pgn"]
        self._written_at = began + _REST * (time.monotonic() - began)
        self._page.send("board.kept", {"pgn": pgn})

    def _with(self, tree: GameTree) -> Shown:
        """Return what is on the board, with a tree in the place of the present one."""
        opened = {number: tree if other is self.tree else other for number, other in self.shown.opened.items()}
        return self.shown._replace(tree=tree, opened=opened, review=self.review)

    def step(self, back: bool) -> Shown:
        """Return what was on the board before, or what was undone, and keep what is there. Raises PsearchError where
        there is nothing."""
        source, target = (self._former, self._later) if back else (self._later, self._former)
        if not source:
            raise PsearchError(f"there is nothing to {'undo' if back else 'redo'}")
        other = source.pop()
        target.append(self._with(self.tree))
        return other
