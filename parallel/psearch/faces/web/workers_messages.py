"""`workers.*`: what the workers do while the engine searches, or those of a user's game do, twenty times a second, to
pages that want to see it; and five times a second which nodes are open.

    page                        server
    workers.watch {first}       workers.look: a snapshot of `psearch.lab.watching.watcher`, each one after the other
    workers.seen {}             after each of them: a page that is slow gets fewer, and each of a longer time
    workers.rest {}             no more of them

first: number of the first of the 64 workers whose tracks are sent.
"""

from __future__ import annotations

import asyncio
import time

from psearch.defaults import MAX_THREADS
from psearch.faces.web.game_messages import OwnGame
from psearch.faces.web.messages import Payload, handles, whole_of
from psearch.faces.web.page import Page
from psearch.lab.watching.node_lines import chess_lines
from psearch.lab.watching.watcher import LinesOf, Watched, Watcher
from psearch.results import PsearchError

PERIOD_S = 0.05
_MOST_UNSEEN = 3
"""Snapshots that a page has not confirmed yet; nothing is looked at until it does."""
_SHARE = 0.04
"""Largest share of a core for looking: what takes longer, as with hundreds of workers, is done less often."""
_NODES_S = 0.2
"""Time between looks at the open nodes, in seconds: they change faster than anybody reads."""
_IDLE_S = 0.2
"""Time between looks while nothing is searched, in seconds."""


class _Watching:
    """One page that looks on."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._engine: Watched | None = None
        self._watcher: Watcher | None = None
        self._was_running = False
        self._nodes_at = 0.0
        self.first = 0
        self.unseen = 0
        self._task: asyncio.Task[None] | None = None

    def begin(self, first: int) -> None:
        """Look from now on."""
        self.first, self.unseen = first, 0
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())

    def stop(self) -> None:
        """Look no more."""
        if self._task is not None:
            self._task.cancel()
            self._task = None
        self._watcher = self._engine = None

    async def _run(self) -> None:
        while self._page.is_open:
            began = time.thread_time()
            is_running = self.unseen < _MOST_UNSEEN and self._look()
            spent = time.thread_time() - began
            wait_s = max(PERIOD_S - spent, spent / _SHARE - spent)
            await asyncio.sleep(wait_s if is_running or self.unseen else max(wait_s, _IDLE_S))

    def _look(self) -> bool:
        """Send what there is to see; whether something is being searched."""
        engine: Watched
        lines_of: LinesOf
        game = OwnGame.running
        if game is not None and game.supervisor is not None:
            engine, lines_of = game, game.lines_of
        else:
            try:
                engine, lines_of = self._page.engine, chess_lines
            except PsearchError:  # it is starting
                return False
        if engine is not self._engine or self._watcher is None:
            self._engine, self._watcher = engine, Watcher(engine, lines_of)
        now = time.monotonic()
        with_nodes = now - self._nodes_at >= _NODES_S
        snapshot = self._watcher.look(self.first, with_nodes)
        if snapshot is None or snapshot["fen"] is None:
            return False
        if with_nodes:
            self._nodes_at = now
        is_running = not snapshot["done"]
        if is_running or self._was_running:  # the last one says that it is over
            self.unseen += 1
            self._page.send("workers.look", snapshot)
        self._was_running = is_running
        return is_running


@handles("workers.watch")
async def watch(page: Page, payload: Payload) -> None:
    """Begin to look, or at other workers."""
    first = whole_of(payload, "first", 0, MAX_THREADS) if "first" in payload else 0
    page.part(_Watching).begin(first)


@handles("workers.seen")
async def seen(page: Page, payload: Payload) -> None:
    """Note that the page has drawn a snapshot."""
    watching = page.part(_Watching)
    watching.unseen = max(0, watching.unseen - 1)


@handles("workers.rest")
async def rest(page: Page, payload: Payload) -> None:
    """Rest: the page does not show the workers any more."""
    page.part(_Watching).stop()
