"""An open page and the handlers of its messages; and the set of all pages.

The searches of a page end if it does not return soon; its board is kept longer, for computers that sleep.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from typing import Any

import chess

from psearch.faces.web.analysing import PAGE_SETTINGS, Analyst
from psearch.faces.web.connection import Connection
from psearch.faces.web.game_board import GameBoard, Shown
from psearch.faces.web.game_tree import GameTree, move_in_words, move_of
from psearch.faces.web.messages import Payload, flag_of, setting_facts, text_of, texts_of, whole_of
from psearch.faces.web.playing import Match
from psearch.faces.web.reviewing import Review
from psearch.faces.web.shared_engine import SharedEngine, SharedSettings
from psearch.faces.web.watching_tabs import BackgroundWork, OwnGame, Watching
from psearch.results import PsearchError
from psearch.strength import MAX_ELO, MIN_ELO
from psearch.version import __version__

MOST_PAGES = 24
"""Most pages; a new one replaces the page that was closed longest ago."""
_KEPT_S = 1800.0
"""Time for which the board of a closed page is kept, in seconds."""
_POSITIONS_960 = 960
_LONGEST_PGN = 500_000
_LONGEST_FEN = 200
_LONGEST_LINE = 100
"""Most moves of a line from the page."""
_MOST_NUMBER = 2**31


class Page(Connection):
    """Page in one tab of a browser."""

    def __init__(self, shared_engine: SharedEngine) -> None:
        super().__init__(shared_engine)
        self.board = GameBoard(self)
        self.match = Match(self, self.board)
        self.analyst = Analyst(self, self.board, self.match)
        self.review = Review(self, self.board, self.match)
        self._tabs = (Watching(self), OwnGame(self), BackgroundWork(self, self.board))
        self.handlers |= {
            "page.facts": self._send_facts,
            "engine.configure": self._configure_engine,
            "engine.forget": lambda payload: self.begin("engine", shared_engine.forget()),
            "page.states": lambda payload: self._send_states(),
            "play.start": self._start_game,
            "play.back": self._take_back,
            "board.move": self._move,
            "board.say": self._say,
            "board.go": self._go,
            "board.line": self._line,
            "board.peek": self._peek,
            "board.fen": lambda payload: self._put_tree(GameTree.of_fen(text_of(payload, "text", _LONGEST_FEN))),
            "board.start": lambda payload: self._put_tree(GameTree()),
            "board.chess960": self._chess960,
            "board.pgn": self._pgn,
            "board.remove": self._remove,
            "board.promote": self._promote,
            "board.draw": self._draw,
            "board.header": self._set_header,
            "board.undo": lambda payload: self._step(True),
            "board.redo": lambda payload: self._step(False),
            "board.export": lambda payload: self.send("board.exported", self.board.tree.export()),
        }

    def come(self) -> None:
        self.match.come_back()
        self.send("engine.state", self.shared_engine.facts)
        self.board.send_game()
        self.send("analysis.state", self.analyst.facts)
        self.send("play.state", self.match.facts)
        self.send("review.state", self.board.review)

    def _send_states(self) -> None:
        """Send what the engine does for this page, to a tab that was opened later."""
        self.send("engine.state", self.shared_engine.facts)
        self.send("analysis.state", self.analyst.facts)
        self.send("review.state", self.board.review)

    def leave(self) -> None:
        self.analyst.stop("the page was closed")
        self.review.stop()
        self.match.leave()
        for tab in self._tabs:
            tab.stop()

    async def close(self, reason: str = "") -> None:
        await super().close(reason)
        self.match.close()

    def _send_facts(self, payload: Payload) -> None:
        settings = [setting_facts(option) for option in PAGE_SETTINGS]
        self.send("page.facts", {"version": __version__, "settings": settings, "elo": [MIN_ELO, MAX_ELO]})

    def _configure_engine(self, payload: Payload) -> None:
        """Change the workers of all pages: `threads`, `hash` in MiB."""
        bounds = self.shared_engine.bounds
        wanted = whole_of(payload, "threads", 1, bounds.threads), whole_of(payload, "hash", 1, bounds.hash_mb)
        self.begin("engine", self.shared_engine.configure(*wanted))

    def _start_game(self, payload: Payload) -> None:
        """Begin a game against the engine; see `Match.start`."""
        self.match.start(payload)
        self.analyst.stop("a game is being played")
        self.analyst.follow_other_game()
        self.review.change({})

    def _take_back(self, payload: Payload) -> None:
        self.match.take_back()
        self.analyst.stop("a game is being played")
        self.review.stop()

    def _put(self, other: Shown) -> None:
        """Replace the board."""
        self.match.forget()
        self.board.put(other)
        self.review.change(other.review)
        self.board.send_game()
        self.analyst.follow_other_game()

    def _put_tree(self, tree: GameTree, name: str = "") -> None:
        self.match.check_may_change()
        self.board.keep()
        self._put(Shown(tree, name))

    def _step(self, back: bool) -> None:
        self.match.check_may_change()
        self._put(self.board.step(back))

    def _play(self, move: chess.Move) -> None:
        """Make a legal move on the board, in a running game or for analysis."""
        if self.match.is_running:
            self.match.take_move(move)
            return
        self.board.tree.play(move)
        self._send_change()

    def _send_change(self) -> None:
        self.board.send_game()
        self.analyst.follow()

    def _is_late(self, payload: Payload) -> bool:
        """Tell whether a move was meant for a game against psearch (`playing`) that has ended meanwhile."""
        return "playing" in payload and flag_of(payload, "playing") and not self.match.is_running

    def _say(self, payload: Payload) -> None:
        """Make the move that a user has typed: `text`; `playing` as for `_move`."""
        if self._is_late(payload):
            raise PsearchError("the game has ended")
        self._play(move_in_words(self.board.tree.board(), text_of(payload, "text", 20)))

    def _move(self, payload: Payload) -> None:
        """Move a piece: `from`, `to`, `promotion` (q, r, b, n or empty), in the position `at`; `playing`: in a game
        against psearch."""
        if _number(payload, "at") != self.board.tree.number or self._is_late(payload):
            self.board.send_position()  # the move was meant for another position, or for a game that has ended
            return
        words = [text_of(payload, name, 2) for name in ("from", "to", "promotion")]
        try:
            self._play(move_of(self.board.tree.board(), *words))
        except PsearchError:
            self.board.send_position()  # the page has moved the piece already
            raise

    def _go(self, payload: Payload) -> None:
        """Go to another position of the game: `id`."""
        self.board.tree.go(_number(payload))
        self.board.send_position()
        self.analyst.follow()

    def _line(self, payload: Payload) -> None:
        """Add a line to the game from the present position and go to its end: `moves` in UCI notation."""
        self.match.check_may_change()
        for word in texts_of(payload, "moves", _LONGEST_LINE):
            self.board.tree.play(move_of(self.board.tree.board(), word[:2], word[2:4], word[4:]))
        self._send_change()

    def _peek(self, payload: Payload) -> None:
        """Send the position at the end of a line: `moves` in UCI notation, from the position `at`."""
        board = self.board.tree.board()
        moves = texts_of(payload, "moves", _LONGEST_LINE)
        if _number(payload, "at") == self.board.tree.number:
            for word in moves:
                board.push(move_of(board, word[:2], word[2:4], word[4:]))
            self.send("board.peeked", {"fen": board.fen(), "last": moves[-1:]})

    def _chess960(self, payload: Payload) -> None:
        """Set up an initial position of Chess960, by `number` or at random."""
        number = random.randrange(_POSITIONS_960)
        if payload.get("number") is not None:
            number = whole_of(payload, "number", 0, _POSITIONS_960 - 1)
        self._put_tree(GameTree.of_board(chess.Board.from_chess960_pos(number)))

    async def _pgn(self, payload: Payload) -> None:
        """Show the game of a PGN: `text`; optionally the node `here` to go to, and the game's `name` for the page."""
        self.match.check_may_change()
        here = _number(payload, "here") if "here" in payload else 0
        name = text_of(payload, "name") if "name" in payload else ""
        # in a thread, since long games take seconds
        tree, problem = await asyncio.to_thread(GameTree.of_pgn, text_of(payload, "text", _LONGEST_PGN))
        with contextlib.suppress(PsearchError):  # the page's PGN may lack the latest move
            tree.go(here)
        self._put_tree(tree, name)
        if problem:
            self.send("board.error", {"text": problem})

    def _remove(self, payload: Payload) -> None:
        """Delete a move and all that follow: `id`."""
        self.match.check_may_change()
        before = self.board.tree.copy()
        self.board.tree.remove(_number(payload))
        self.board.keep(before)
        self._send_change()

    def _draw(self, payload: Payload) -> None:
        """Replace the arrows and circles at a move: `id`, `shapes` like Gd2d4 and Rd4."""
        self.board.tree.draw(_number(payload), texts_of(payload, "shapes", _LONGEST_LINE))
        self.board.send_game()

    def _set_header(self, payload: Payload) -> None:
        """Set a header of the PGN, or remove it: `name`, `value`."""
        before = self.board.tree.copy()
        self.board.tree.set_header(text_of(payload, "name"), text_of(payload, "value", 1000))
        if not self.match.is_running:
            self.board.keep(before)
        self.board.send_game()

    def _promote(self, payload: Payload) -> None:
        """Make the moves up to this one the main line: `id`."""
        self.match.check_may_change()
        self.board.tree.promote(_number(payload))
        self.board.send_game()


def _number(payload: Payload, name: str = "id") -> int:
    return whole_of(payload, name, 0, _MOST_NUMBER)


class Pages:
    """Keeps all pages and their shared engine. Each page names itself by a random number, which survives a reload."""

    def __init__(self, settings: SharedSettings) -> None:
        self._settings = settings
        self.shared_engine: SharedEngine
        """Engine of all pages; exists after `start`."""
        self._pages: dict[str, Page] = {}

    def start(self) -> None:
        """Start the engine in the background. Called in the event loop."""
        self.shared_engine = SharedEngine(self._settings, self._send_all)
        self.shared_engine.start()

    async def page(self, page_id: str) -> Page | None:
        """Return the page of this name, creating it if needed; None if there are too many."""
        left = {page_id: page.left_at for page_id, page in self._pages.items() if page.left_at is not None}
        oldest = sorted(left, key=lambda page_id: left[page_id])
        is_full = page_id not in self._pages and len(self._pages) >= MOST_PAGES
        for number, former in enumerate(oldest):
            if time.monotonic() - left[former] > _KEPT_S or (is_full and number == 0):
                await self._pages.pop(former).close()
        if page_id not in self._pages and len(self._pages) < MOST_PAGES:
            self._pages[page_id] = Page(self.shared_engine)
        return self._pages.get(page_id)

    async def close(self) -> None:
        """Close all pages and the engine."""
        for page in self._pages.values():
            await page.close("the server has ended")
        self._pages.clear()
        await self.shared_engine.close()

    def _send_all(self, type: str, payload: dict[str, Any]) -> None:
        for page in self._pages.values():
            page.send(type, payload)
