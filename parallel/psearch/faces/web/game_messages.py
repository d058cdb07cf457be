"""`game.*`: a game of the user's (`psearch serve --game FILE`), searched in sight of the tab "Workers".

    page                        server
    game.hello {}               game.state {game, position, running, board, text}, if there is a game; and again
                                whenever one of these changes
    game.search {position}
    game.stop {}

game: the file's name; position: in the game's words; board: as text, null where the game does not draw it; text: what
was found. A position is all that a page says: the file is that of the command line. It is read again for each search.
"""

from __future__ import annotations

import asyncio
import os
import time
from functools import partial
from typing import Any

import numpy as np

from psearch.api.asynchronous import in_thread
from psearch.defaults import DEFAULT_POLICY, MAX_DEPTH
from psearch.faces.web.messages import Payload, handles, text_of
from psearch.faces.web.page import Page
from psearch.games.own_game import Game, GamePosition
from psearch.games.searching import GameResult, final_text, iteration_text, options_for, search_with, supervisor_for
from psearch.lab.watching.node_lines import GameLines
from psearch.processes.control import SearchControl
from psearch.processes.supervisor import Supervisor
from psearch.results import Limits, PsearchError
from psearch.trace.recorder import Recorder

_LONGEST_POSITION = 1000
_LAST_LOOK_S = 0.3
"""How long the workers of a search that is over are there to be looked at: it is seen to be over."""


class OwnGame:
    """The game as one page has it searched, by workers of its own, whom all pages see; a `Watched`."""

    running: OwnGame | None = None
    """the one that searches, or waits for the cores"""

    def __init__(self, page: Page) -> None:
        self.supervisor: Supervisor | None = None
        """the workers, while there are any"""
        self._page = page
        self._position: GamePosition | None = None
        self._control = SearchControl()
        self._facts: dict[str, Any] = {
            "game": os.path.basename(page.settings.game),
            "position": "",
            "running": False,
            "board": None,
            "text": "",
        }

    def begin(self, text: str) -> None:
        """Search this position until it is solved, or until `stop`. Raises PsearchError where that cannot be."""
        if not self._page.settings.game:
            raise PsearchError("no game was named: psearch serve --game FILE")
        if OwnGame.running is not None:
            raise PsearchError("the game is being searched already: stop that first, or wait")
        OwnGame.running = self
        self._control = SearchControl()
        self._page.begin("game", self._run(text))

    def stop(self) -> None:
        """End the search, if there is one."""
        self._control.stop()

    def tell(self, **facts: Any) -> None:
        """Tell the page how things are, with these changes."""
        self._facts.update(facts)
        self._page.show("game.state", dict(self._facts))

    def lines_of(self, root: np.ndarray) -> GameLines | None:
        """Return the lines of the present search."""
        return None if self._position is None else GameLines(self._position)

    def _recorder(self) -> Recorder | None:
        return None if self.supervisor is None else self.supervisor.recorder

    async def _run(self, text: str) -> None:
        shared_engine = self._page.shared_engine
        found = ""
        try:
            waiting = "" if shared_engine.has_cores else "waiting until a game has been analysed"
            self.tell(running=True, position=text, board=None, text=waiting)
            async with shared_engine.cores("a game of your own is being searched"):
                found = await in_thread(partial(self._search, text, asyncio.get_running_loop()), self.stop)
        finally:
            OwnGame.running = None
            self.tell(running=False, text=found)

    def _search(self, text: str, loop: asyncio.AbstractEventLoop) -> str:
        """In a thread: what was found, in words."""
        settings = self._page.settings
        game = Game(settings.game)
        self._position = position = game.read(text)
        loop.call_soon_threadsafe(partial(self.tell, board=game.board_text(position), text=""))
        options = options_for(game, DEFAULT_POLICY)

        def show(result: GameResult) -> None:
            loop.call_soon_threadsafe(partial(self.tell, text=iteration_text(result)))

        def note(line: str) -> None:
            loop.call_soon_threadsafe(self._page.shared_engine.note, line)

        limits = Limits(depth=MAX_DEPTH)
        with supervisor_for(position, settings.threads, settings.hash_mb, options, watched=True) as supervisor:
            self.supervisor = supervisor
            try:
                result = search_with(supervisor, position, limits, options, show, self._control, note)
                time.sleep(_LAST_LOOK_S)
            finally:
                self.supervisor = None
        return final_text(position, result)


@handles("game.hello")
async def hello(page: Page, payload: Payload) -> None:
    """Tell which game there is, and what was said last."""
    if page.settings.game:
        page.part(OwnGame).tell()


@handles("game.search")
async def search(page: Page, payload: Payload) -> None:
    """Search `position`, in the game's words, until it is solved or stopped."""
    page.part(OwnGame).begin(text_of(payload, "position", _LONGEST_POSITION))


@handles("game.stop")
async def stop(page: Page, payload: Payload) -> None:
    """End the search of this page."""
    page.part(OwnGame).stop()
