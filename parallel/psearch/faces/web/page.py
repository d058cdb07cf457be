"""A page that is open: what it says and is told, and what goes on for it.

It outlives its WebSocket: a reload finds everything as it was. A page that does not come back ends what is searched for
it; its board is kept for a while, for computers that sleep.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol, TypeVar

import chess

from psearch.api.asynchronous import AsyncEngine
from psearch.faces.web.analysing import Analyst
from psearch.faces.web.context import Context
from psearch.faces.web.game_tree import GameTree, UnreadGame
from psearch.faces.web.messages import Payload, handler_of, message, parse, part_of
from psearch.faces.web.playing import Match
from psearch.faces.web.reviewing import Review
from psearch.faces.web.shared_engine import EngineSettings, SharedEngine
from psearch.results import PsearchError

T = TypeVar("T", bound="PagePart")
SHOW_S = 0.05
"""Least time between two messages about the same state, in seconds."""
PATIENCE_S = 3.0
"""How long a page that is gone may take to come back before what is searched for it ends."""
_MOST_WAITING = 2_000
"""messages that a page has not taken: it is frozen, and will be told everything when it comes back"""
_MOST_UNHANDLED = 32
"""Messages of a part that wait for the one before them. The page waits with the next."""
_MOST_FORMER = 4
"""Steps of *Undo*: each may be a game of 4,000 moves."""
_REST = 20
"""The PGN of a long game takes long to write: no more of the time than one part in so many."""
_CORE = ("board", "analysis", "engine", "play", "review")
"""Parts that are handled in one row, as they are about the same board."""


class Socket(Protocol):
    """What a page needs of a WebSocket; `psearch.faces.web.server` has it from Starlette."""

    async def send(self, text: str) -> None:
        """Send one message. Raises ConnectionError when nobody is there."""

    async def close(self, code: int, reason: str) -> None:
        """End it."""


class PagePart(Protocol):
    """What a tab has of its own for a page."""

    def stop(self) -> None:
        """End what goes on: the page has left."""


class Shown(NamedTuple):
    """What is on the board, and what goes with it."""

    tree: GameTree
    games: list[UnreadGame]
    """of the PGN that was given last"""
    number: int
    """of the one that is shown"""
    opened: dict[int, GameTree]
    """those that were looked at, as they were left"""
    review: dict[str, Any]
    """what the page shows of the analysis of the game"""


class Page(Context):
    """One tab of a browser."""

    def __init__(self, shared_engine: SharedEngine) -> None:
        super().__init__(shared_engine)
        self.analyst = Analyst(self)
        self.match = Match(self)
        self.review = Review(self)
        self.games: list[UnreadGame] = []
        self.game_number = 0
        self.opened: dict[int, GameTree] = {}
        """these three: as in `Shown`"""
        self._writing: asyncio.Task[None] | None = None
        """waits to tell the PGN"""
        self._written_at = 0.0
        """before this moment the PGN is not written again"""
        self.left_at: float | None = time.monotonic()
        """when its WebSocket went; None while it has one"""
        self._socket: Socket | None = None
        self._said: deque[str] = deque()
        self._shown: dict[str, Mapping[str, Any]] = {}
        """the latest states, by type, that have not been sent"""
        self._has_news = asyncio.Event()
        self._rows: dict[str, asyncio.Queue[tuple[str, Payload]]] = {}
        self._parts: dict[Any, Any] = {}
        self._leaving: asyncio.TimerHandle | None = None

    # -- for handlers --------------------------------------------------------------------------------------------------

    @property
    def engine(self) -> AsyncEngine:
        """The engine that all pages share. Raises PsearchError while it is not ready yet."""
        return self.shared_engine.engine

    @property
    def settings(self) -> EngineSettings:
        """Return what the command line has said, and pages have changed since."""
        return self.shared_engine.settings

    @property
    def board(self) -> chess.Board:
        """A copy of the position at hand, with the moves that led to it."""
        return self.tree.board()

    @property
    def is_open(self) -> bool:
        """Whether there is still somebody to send to."""
        return self._socket is not None

    def send(self, type: str, payload: Mapping[str, Any]) -> None:
        """Say something to the page."""
        if self._socket is None:
            return
        for name in [name for name in self._shown if part_of(name) == part_of(type)]:
            self._said.append(message(name, self._shown.pop(name)))  # what came first is said first
        self._said.append(message(type, payload))
        self._has_news.set()
        if len(self._said) > _MOST_WAITING:
            self._give_up(self._socket)

    def show(self, type: str, payload: Mapping[str, Any]) -> None:
        """Say a state of which only the latest matters."""
        if self._socket is None:
            return
        if not self._shown:
            self._has_news.set()
        self._shown[type] = payload

    def keep(self, tree: GameTree | None = None) -> None:
        """Keep what is on the board for *Undo*; see `Context`."""
        self.former.append(self._shown_with(tree or self.tree))
        del self.former[:-_MOST_FORMER]
        self.later.clear()

    def put(self, other: Shown, opened: bool = False) -> None:
        """Put something else on the board. opened: it was chosen from a file, just now. Raises PsearchError while a
        game is played."""
        self.match.forget()
        self.tree, self.games, self.game_number, self.opened, review = other
        self.review.change(review)
        self.tell_games(opened)
        self.tell_game()
        self.analyst.follow_other_game()

    def step(self, back: bool) -> None:
        """Put on the board what was there before (*Undo*), or what was undone. Raises PsearchError where there is
        nothing."""
        self.match.check_may_change()
        source, target = (self.former, self.later) if back else (self.later, self.former)
        if not source:
            raise PsearchError(f"there is nothing to {'undo' if back else 'redo'}")
        other = source.pop()
        target.append(self._shown_with(self.tree))
        self.put(other)

    def _shown_with(self, tree: GameTree) -> Shown:
        """What is on the board, with a tree in the place of the present one."""
        opened = {number: tree if other is self.tree else other for number, other in self.opened.items()}
        return Shown(tree, self.games, self.game_number, opened, self.review.facts)

    def tell_game(self) -> None:
        """Tell the page the tree, the position, and the PGN: it has the game also when the server has ended."""
        super().tell_game()
        if self._writing is None or self._writing.done():
            self._writing = self.begin("board", self._tell_pgn())

    async def _tell_pgn(self) -> None:
        await asyncio.sleep(self._written_at - time.monotonic())
        began = time.monotonic()
        pgn = self.tree.export()["pgn"]
        self._written_at = began + _REST * (time.monotonic() - began)
        self.send("board.kept", {"pgn": pgn})

    def tell_games(self, opened: bool) -> None:
        """Tell what can be chosen from. opened: one was, just now."""
        titles = [f"{number}. {game.title}" for number, game in enumerate(self.games, 1)]
        self.send("board.games", {"titles": titles, "here": self.game_number, "opened": opened})

    def part(self, kind: Callable[[Page], T]) -> T:
        """Return what this page has of a kind, made when it is first asked for."""
        if kind not in self._parts:
            self._parts[kind] = kind(self)
        found: T = self._parts[kind]
        return found

    # -- its WebSocket -------------------------------------------------------------------------------------------------

    async def attach(self, socket: Socket) -> asyncio.Task[None]:
        """Take a WebSocket; one that it had before is closed. Returns what sends to it until it is cancelled."""
        former, self._socket = self._socket, socket
        if former is not None:
            await former.close(4001, "this board was opened in another tab")
        if self._leaving is not None:
            self._leaving.cancel()
            self._leaving = None
        self.left_at = None
        self._said.clear()
        self._shown.clear()
        self.match.come_back()
        return asyncio.create_task(self._write(socket))

    def detach(self, socket: Socket) -> None:
        """Detach from the WebSocket, which is gone."""
        if self._socket is not socket:
            return
        self._socket = None
        self.left_at = time.monotonic()
        self._leaving = asyncio.get_running_loop().call_later(PATIENCE_S, self.leave)

    def leave(self) -> None:
        """End what is searched, since nobody looks any more."""
        self.analyst.stop("the page was closed")
        self.review.stop()
        self.match.leave()
        for part in self._parts.values():
            part.stop()

    def close(self) -> None:
        """Close the page."""
        if self._leaving is not None:
            self._leaving.cancel()
        self.leave()
        self.match.close()
        self.end_tasks()

    async def hang_up(self, code: int, reason: str) -> None:
        """Close its WebSocket, if it has one."""
        if self._socket is not None:
            await self._socket.close(code, reason)

    def _give_up(self, socket: Socket) -> None:
        """The page takes nothing: it is frozen, or its computer sleeps. It may come back, and is told all then."""
        self.detach(socket)
        self._said.clear()
        self._shown.clear()
        self.begin("page", socket.close(1013, "the page does not keep up"))

    async def _write(self, socket: Socket) -> None:
        """Send what there is to say, states at most once in `SHOW_S`."""
        next_show = 0.0
        with contextlib.suppress(ConnectionError):
            while self._socket is socket:
                wait_s = max(0.0, next_show - time.monotonic()) if self._shown else None
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._has_news.wait(), wait_s)
                self._has_news.clear()
                while self._said and self._socket is socket:
                    await socket.send(self._said.popleft())
                if self._shown and time.monotonic() >= next_show:
                    next_show = time.monotonic() + SHOW_S
                    latest, self._shown = self._shown, {}
                    for name, payload in latest.items():
                        await socket.send(message(name, payload))

    # -- what it says --------------------------------------------------------------------------------------------------

    async def receive(self, text: str) -> None:
        """Receive a message. Returns when there is room for the next."""
        try:
            type, payload = parse(text)
            handler_of(type)
        except PsearchError as error:
            self.send("page.error", {"text": str(error)})
            return
        part = "core" if part_of(type) in _CORE else part_of(type)
        row = self._rows.get(part)
        if row is None:
            row = self._rows[part] = asyncio.Queue(_MOST_UNHANDLED)
            self.begin(part_of(type), self._handle(row))
        await row.put((type, payload))

    async def _handle(self, row: asyncio.Queue[tuple[str, Payload]]) -> None:
        """The messages of one part, one after the other."""
        while True:
            type, payload = await row.get()
            try:
                await handler_of(type)(self, payload)
            except PsearchError as error:
                self.send(f"{part_of(type)}.error", {"text": str(error)})
            except Exception as error:  # a fault of ours, which must not end the conversation
                print(f"psearch: {type}: {error!r}", file=sys.stderr)
                self.send(f"{part_of(type)}.error", {"text": "this should not happen: see the server's terminal"})

    def tell_everything(self) -> None:
        """Tell everything to a page that has just come, or come back."""
        self.send("engine.state", self.shared_engine.facts)
        self.tell_games(opened=False)
        self.tell_game()
        self.send("analysis.state", self.analyst.facts)
        self.send("play.state", self.match.facts)
        self.send("review.state", self.review.facts)
